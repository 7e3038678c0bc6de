package bundle_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func (l *lab) evidence(t testing.TB, claim verifytest.Claim) attest.Evidence {
	t.Helper()
	payload, err := l.own.Bundle(claim)
	if err != nil {
		t.Fatal(err)
	}
	return attest.Evidence{Format: attest.Bundle, Payload: payload, Origin: attest.Origin{Via: "referrers"}}
}

// TestFact checks the content of a fact.
func TestFact(t *testing.T) {
	l := newLab(t)
	at := time.Now().Add(-24 * time.Hour).Truncate(time.Second).UTC()
	signer := l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = at.Add(-time.Minute) })
	later := at.Add(2 * time.Minute)

	t.Run("signature", func(t *testing.T) {
		fact, err := l.verify(t, verifytest.Claim{
			Signer: signer, Time: at, Stamps: []verifytest.Stamp{{Time: later}},
			Statement: verifytest.CosignSignature(digest.String(), map[string]any{"env": "prod"}),
		}, keyless(nil))
		if err != nil {
			t.Fatal(err)
		}
		if fact.Role != attest.Signature || fact.Statement != nil {
			t.Errorf("cosign's signing statement is a %s with statement %v, want a signature", fact.Role, fact.Statement)
		}
		if fact.Signer.Subject != workflow || fact.Signer.Issuer != issuer || fact.Signer.Extensions["runnerEnvironment"] != "github-hosted" {
			t.Errorf("signed by %+v", fact.Signer)
		}
		if len(fact.Entries) != 1 || !fact.Entries[0].Time.Equal(at) || fact.Entries[0].LogID != l.own.Rekor.ID() {
			t.Errorf("entries %+v, want one of %s at %s", fact.Entries, l.own.Rekor.ID(), at)
		}
		if !fact.SignedAt.Equal(at) || fact.TimeSource != verify.LogTime || len(fact.Signatures) != 1 {
			t.Errorf("signed at %s by %s, want the earlier of %s (a log's) and %s", fact.SignedAt, fact.TimeSource, at, later)
		}
		if !fact.Expires.IsZero() {
			t.Errorf("expires at %s, and its certificate was needed at the time of signing only", fact.Expires)
		}
		if fact.Annotations["env"] != "prod" || fact.Format != attest.Bundle || fact.Origin.Via != "referrers" {
			t.Errorf("fact %+v", fact)
		}
	})
	t.Run("attestation", func(t *testing.T) {
		fact, err := l.verify(t, verifytest.Claim{Signer: signer, Statement: provenance()}, keyless(nil))
		if err != nil {
			t.Fatal(err)
		}
		if fact.Role != attest.Attestation || fact.Statement == nil || fact.Statement.PredicateType != slsa {
			t.Errorf("a statement of another type is a %s with %+v, want an attestation", fact.Role, fact.Statement)
		}
	})
	t.Run("no trusted time", func(t *testing.T) {
		now := l.keyless(t, nil)
		fact, err := l.verify(t, verifytest.Claim{Signer: now, Statement: signature(), NoLog: true}, keyless(noLog))
		if err != nil {
			t.Fatal(err)
		}
		if !fact.SignedAt.IsZero() || fact.TimeSource != "" || !fact.Expires.Equal(now.Certificate().NotAfter) {
			t.Errorf("signed at %s, expires %s; want no time, and the certificate's end", fact.SignedAt, fact.Expires)
		}
		end := time.Now().Add(time.Minute).Truncate(time.Second)
		fact, err = l.verify(t, verifytest.Claim{Signer: now, Statement: signature(), NoLog: true}, keyless(func(a *verify.Authority) {
			noLog(a)
			a.TrustedRoot = until(t, l.own.TrustedRoot(), end)
		}))
		if err != nil || !fact.Expires.Equal(end) {
			t.Errorf("expires %s, want %s, when the certificate authority ends: %v", fact.Expires, end, err)
		}
	})
	t.Run("Rekor v2", func(t *testing.T) {
		key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
		fact, err := l.verify(t, verifytest.Claim{Signer: key, Statement: signature(), Records: []verifytest.Record{{Log: l.own.Rekor2}}}, byKey(key, nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(fact.Entries) != 1 || !fact.Entries[0].Time.IsZero() || !fact.SignedAt.IsZero() {
			t.Errorf("entries %+v, signed at %s; a Rekor v2 log gives no time", fact.Entries, fact.SignedAt)
		}
	})
}

// TestRole: an attestation never passes for a signature, whatever it was
// offered as, and a statement never passes for one of another type.
func TestRole(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Statement: provenance(), NoLog: true})
	evidence.Role = attest.Signature
	fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, noLog))
	if err != nil || fact.Role != attest.Attestation {
		t.Errorf("got role %q and error %v, want an attestation", fact.Role, err)
	}
	evidence.Role, evidence.PredicateType = attest.Attestation, slsa
	fact, err = l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, noLog))
	check(t, fact, err, "")
	evidence.PredicateType = "https://spdx.dev/Document"
	fact, err = l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, noLog))
	check(t, fact, err, verify.WrongPredicate)
}

func TestCertificate(t *testing.T) {
	l := newLab(t)
	signer, other := l.keyless(t, nil), l.keyless(t, nil)
	authority := func(c verify.Certificate) verify.Authority {
		return verify.Authority{Name: "certificate", Certificate: &c}
	}
	claim := verifytest.Claim{Signer: signer, Statement: signature()}
	tests := []struct {
		name, reason string
		authority    verify.Authority
		want         verify.Code
	}{
		{"leaf and chain", "both are given", authority(verify.Certificate{Leaf: signer.CertificatePEM(), Chain: signer.ChainPEM()}), ""},
		{"other leaf", "another certificate signed", authority(verify.Certificate{Leaf: other.CertificatePEM(), Chain: other.ChainPEM()}), verify.WrongIdentity},
		{"leaf alone", "it is trusted by itself", authority(verify.Certificate{Leaf: signer.CertificatePEM(), CT: verify.CT{Ignore: true}}), ""},
		{"other leaf alone", "another certificate signed", authority(verify.Certificate{Leaf: other.CertificatePEM(), CT: verify.CT{Ignore: true}}), verify.WrongIdentity},
		{"chain alone", "any certificate of it", authority(verify.Certificate{Chain: signer.ChainPEM()}), ""},
		{"foreign chain alone", "a certificate of another authority", authority(verify.Certificate{Chain: l.foreign.CA.ChainPEM()}), verify.UntrustedChain},
		{"the key's digest algorithm", "a bundle can have no other", authority(verify.Certificate{Chain: signer.ChainPEM(), Hash: "sha256"}), ""},
		{"another digest algorithm", "a bundle can have only the key's", authority(verify.Certificate{Chain: signer.ChainPEM(), Hash: "sha512"}), verify.WrongFormat},
		{"leaf with a foreign chain", "the leaf must lead to the chain", authority(verify.Certificate{Leaf: signer.CertificatePEM(), Chain: l.foreign.CA.ChainPEM()}), verify.UntrustedChain},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fact, err := l.verify(t, claim, test.authority)
			check(t, fact, err, test.want)
			if t.Failed() {
				t.Log("reason:", test.reason)
			}
		})
	}
}

// TestUnavailable: missing trust is no reason against a signature.
func TestUnavailable(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Statement: signature()})
	canceled := t.Context()
	tests := map[string]verify.Authority{
		"unknown log":    byKey(key, func(a *verify.Authority) { a.Log.URL = "https://rekor.unknown.example" }),
		"unresolved key": {Name: "a", Key: &verify.Key{Ref: "k8s://ns/name"}},
		"broken root":    byKey(key, func(a *verify.Authority) { a.TrustedRoot = []byte("{}") }),
		"no identity":    {Name: "a", Keyless: &verify.Keyless{}},
	}
	for name, authority := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := l.verifier.Verify(canceled, l.subject, evidence, authority)
			if _, isRejection := errors.AsType[*verify.Rejection](err); err == nil || isRejection {
				t.Errorf("got %v, want an error that is no rejection", err)
			}
		})
	}
	if _, err := l.verifier.Verify(t.Context(), image.Pinned{}, evidence, byKey(key, nil)); err == nil {
		t.Error("an image without a digest was proved")
	}
}

// TestKeysNeedNoRoot: a policy of keys with the log switched off works with a
// root that cannot be parsed, and so parses none.
func TestKeysNeedNoRoot(t *testing.T) {
	l := newLab(t)
	l.verifier = verifierOf(t, trust.Options{TrustedRoot: []byte("this is no root")})
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	claim := verifytest.Claim{Signer: key, Statement: signature(), Stamps: []verifytest.Stamp{{}}}
	fact, err := l.verify(t, claim, byKey(key, noLog))
	check(t, fact, err, "")
	_, err = l.verify(t, claim, byKey(key, nil))
	if _, isRejection := errors.AsType[*verify.Rejection](err); err == nil || isRejection {
		t.Errorf("with the log on: got %v, want an error that is no rejection", err)
	}
}

// TestPrivate proves with a private Sigstore that is given in PEM.
func TestPrivate(t *testing.T) {
	l := newLab(t)
	private := trust.Private{
		Fulcio: l.own.CA.ChainPEM(), Rekor: l.own.Rekor.PublicPEM(), RekorURL: "https://rekor.own.example",
		CT: l.own.CTLog.PublicPEM(), TSA: l.own.TSA.ChainPEM(),
	}
	otherLog := private
	otherLog.Rekor = l.foreign.Rekor.PublicPEM()
	claim := verifytest.Claim{Signer: l.keyless(t, nil), Statement: signature(), Stamps: []verifytest.Stamp{{}}}
	l.verifier = verifierOf(t, trust.Options{Private: private})
	fact, err := l.verify(t, claim, keyless(nil))
	check(t, fact, err, "")
	fact, err = l.verify(t, claim, keyless(func(a *verify.Authority) { a.Log.URL = "https://REKOR.own.example/" }))
	check(t, fact, err, "")
	l.verifier = verifierOf(t, trust.Options{Private: otherLog})
	fact, err = l.verify(t, claim, keyless(nil))
	check(t, fact, err, verify.BadLogEntry)
}

// TestArtifact proves by the artifact's bytes, as the conformance client does.
func TestArtifact(t *testing.T) {
	l := newLab(t)
	ed := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{Algorithm: verifytest.Ed25519}))
	payload := verifytest.Must(l.own.Bundle(verifytest.Claim{Signer: ed, Artifact: manifest, NoLog: true}))
	artifact := bundle.Artifact{Digest: digest, Content: manifest}
	if _, err := l.verifier.Prove(t.Context(), artifact, payload, byKey(ed, noLog)); err != nil {
		t.Errorf("an Ed25519 message signature over bytes that are there: %v", err)
	}
	artifact.Content = []byte("other")
	_, err := l.verifier.Prove(t.Context(), artifact, payload, byKey(ed, noLog))
	if rejection, ok := errors.AsType[*verify.Rejection](err); !ok {
		t.Errorf("over other bytes: got %v, want a rejection (%v)", err, rejection)
	}
}

func TestMalformed(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	good := l.evidence(t, verifytest.Claim{Signer: key, Statement: signature()})
	fact, err := l.verifier.Verify(t.Context(), l.subject, good, byKey(key, nil))
	check(t, fact, err, "")
	padded := good
	padded.Payload = append(bytes.Clone(good.Payload), ' ')
	fact, err = l.verifier.Verify(t.Context(), l.subject, padded, byKey(key, nil))
	check(t, fact, err, "")
	edit := func(change func(map[string]any)) []byte {
		var document map[string]any
		if err := json.Unmarshal(good.Payload, &document); err != nil {
			t.Fatal(err)
		}
		change(document)
		return verifytest.Must(json.Marshal(document))
	}
	material := func(d map[string]any) map[string]any { return d["verificationMaterial"].(map[string]any) }
	many := func(d map[string]any) {
		entries := material(d)["tlogEntries"].([]any)
		material(d)["tlogEntries"] = slices.Repeat(entries, 33)
	}
	tests := map[string][]byte{
		"empty":            nil,
		"no JSON":          []byte("bundle"),
		"null":             []byte("null"),
		"nothing in it":    []byte("{}"),
		"v0.4":             bytes.Replace(good.Payload, []byte("bundle.v0.3+json"), []byte("bundle.v0.4+json"), 1),
		"unknown field":    edit(func(d map[string]any) { d["surprise"] = true }),
		"and at its end":   edit(func(d map[string]any) { d["zurprise"] = true }),
		"no material":      edit(func(d map[string]any) { delete(d, "verificationMaterial") }),
		"no content":       edit(func(d map[string]any) { delete(d, "dsseEnvelope") }),
		"many log entries": edit(many),
		"past the bound":   append(bytes.Clone(good.Payload), bytes.Repeat([]byte(" "), bundle.MaxBundle)...),
		"deep":             []byte(strings.Repeat(`{"a":`, 100_000)),
		"chain in v0.3": edit(func(d map[string]any) {
			delete(material(d), "publicKey")
			material(d)["x509CertificateChain"] = map[string]any{"certificates": []any{}}
		}),
		"broken log entry": edit(func(d map[string]any) { material(d)["tlogEntries"] = []any{map[string]any{}} }),
		"empty certificate": edit(func(d map[string]any) {
			delete(material(d), "publicKey")
			material(d)["certificate"] = map[string]any{}
		}),
	}
	for name, payload := range tests {
		t.Run(name, func(t *testing.T) {
			bad := good
			bad.Payload = payload
			fact, err := l.verifier.Verify(t.Context(), l.subject, bad, byKey(key, nil))
			check(t, fact, err, verify.Malformed)
		})
	}
}

// TestConcurrent shares verifier, evidence and authority; sigstore-go edits
// its input.
func TestConcurrent(t *testing.T) {
	l := newLab(t)
	signer := l.keyless(t, func(i *verifytest.Identity) { i.URI, i.Username = "", "dev!example.org" })
	evidence := l.evidence(t, verifytest.Claim{Signer: signer, Statement: signature()})
	authority := keyless(func(a *verify.Authority) { a.Keyless.Identities[0].Subject = verify.Exactly("dev!example.org") })
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			if _, err := l.verifier.Verify(t.Context(), l.subject, evidence, authority); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func FuzzVerify(f *testing.F) {
	l := newLab(f)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	stranger := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	for _, claim := range []verifytest.Claim{
		{Signer: key, Statement: signature()}, {Signer: key, Artifact: manifest, Version: "0.1"},
		{Signer: l.keyless(f, nil), Statement: provenance(), Version: "0.2", Stamps: []verifytest.Stamp{{}}},
		{Signer: key, Statement: signature(), Records: []verifytest.Record{{Log: l.own.Rekor2}}},
	} {
		f.Add(verifytest.Must(l.own.Bundle(claim)))
	}
	authorities := []verify.Authority{byKey(stranger, nil), byKey(stranger, noLog), keyless(func(a *verify.Authority) {
		a.Keyless.Identities[0].Subject = verify.Exactly("nobody")
	})}
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, authority := range authorities {
			_, err := l.verifier.Verify(t.Context(), l.subject, attest.Evidence{Format: attest.Bundle, Payload: payload}, authority)
			if _, isRejection := errors.AsType[*verify.Rejection](err); !isRejection {
				t.Errorf("got %v, want a rejection: no key of the authority signed this", err)
			}
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	l := newLab(b)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	for name, test := range map[string]struct {
		claim     verifytest.Claim
		authority verify.Authority
	}{
		"key":     {verifytest.Claim{Signer: key, Statement: signature(), NoLog: true}, byKey(key, noLog)},
		"keyless": {verifytest.Claim{Signer: l.keyless(b, nil), Statement: signature()}, keyless(nil)},
	} {
		evidence := l.evidence(b, test.claim)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := l.verifier.Verify(b.Context(), l.subject, evidence, test.authority); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
