package cosign_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// padded is a payload of a size.
func padded(size int) []byte {
	text := `{"critical":{"identity":{"docker-reference":"app"},"image":{"docker-manifest-digest":"` + digest.String() +
		`"},"type":"cosign container image signature"},"optional":null}`
	return []byte(text + strings.Repeat(" ", max(0, size-len(text))))
}

// TestPayload signs a payload that is no claim, or larger than the bound.
func TestPayload(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	small := string(padded(0))
	signed := func(payload string) verifytest.Claim {
		return verifytest.Claim{Signer: key, Artifact: []byte(payload), NoLog: true}
	}
	l.run(t, []row{
		{"as it is", "the control", signed(small), byKey(key, noLog), ""},
		{"half read", "a part is of another kind, and the rest would be believed", signed(strings.Replace(small, `"app"`, "1", 1)), byKey(key, noLog), verify.Malformed},
		{"no digest", "it claims nothing", signed(strings.Replace(small, digest.String(), "", 1)), byKey(key, noLog), verify.Malformed},
		{"as long as may be", "the bound itself is within", signed(string(padded(cosign.MaxPayload))), byKey(key, noLog), ""},
		{"longer", "past the bound", signed(string(padded(cosign.MaxPayload + 1))), byKey(key, noLog), verify.Malformed},
	})
}

// TestEnvelopeBound pads an envelope; its signature is not over its own text.
func TestEnvelopeBound(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Statement: provenance(), NoLog: true})
	text := string(evidence.Payload)
	for size, want := range map[int]verify.Code{len(text): "", cosign.MaxEnvelope: "", cosign.MaxEnvelope + 1: verify.Malformed} {
		evidence.Payload = []byte(text + strings.Repeat(" ", size-len(text)))
		fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, noLog))
		check(t, fact, err, want)
	}
}

// TestAnnotationBounds: an annotation at the bound is read, and one byte more is not.
func TestAnnotationBounds(t *testing.T) {
	l := newLab(t)
	signer := l.keyless(t, nil)
	good := l.evidence(t, verifytest.Claim{Signer: signer, Image: signature(nil), Stamps: []verifytest.Stamp{{}}})
	const timestampAnnotation = "dev.sigstore.cosign/rfc3161timestamp"
	for annotation, most := range map[string]int{
		entryAnnotation: cosign.MaxEntry, timestampAnnotation: cosign.MaxTimestamp, certificateAnnotation: trust.MaxPEM,
	} {
		for size, want := range map[int]verify.Code{most: "", most + 1: verify.Malformed} {
			long := good
			long.Annotations = maps.Clone(good.Annotations)
			long.Annotations[annotation] += strings.Repeat("\n", size-len(good.Annotations[annotation]))
			fact, err := l.verifier.Verify(t.Context(), l.subject, long, keyless(nil))
			check(t, fact, err, want)
			if t.Failed() {
				t.Fatalf("%s of %d bytes", annotation, size)
			}
		}
	}
	for size, want := range map[int]verify.Code{cosign.MaxSignature: verify.BadSignature, cosign.MaxSignature + 4: verify.Malformed} {
		long := good
		long.Annotations = maps.Clone(good.Annotations)
		long.Annotations[signatureAnnotation] = strings.Repeat("A", size)
		fact, err := l.verifier.Verify(t.Context(), l.subject, long, keyless(nil))
		check(t, fact, err, want)
	}
}

// TestHalfReadEntry: an entry with a part of another kind is none, although the rest can
// be read.
func TestHalfReadEntry(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Image: signature(nil)})
	var entry map[string]any
	if err := json.Unmarshal([]byte(evidence.Annotations[entryAnnotation]), &entry); err != nil {
		t.Fatal(err)
	}
	payload, ok := entry["Payload"].(map[string]any)
	if !ok {
		t.Fatalf("an entry of another form: %v", entry)
	}
	index := payload["logIndex"]
	for _, test := range []struct {
		index any
		want  verify.Code
	}{{index, ""}, {"text", verify.Malformed}} {
		payload["logIndex"] = test.index
		text, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		evidence.Annotations[entryAnnotation] = string(text)
		fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, nil))
		check(t, fact, err, test.want)
	}
}

// TestRoles: what cosign signs as a statement of its own is a signature, and no attestation
// that a policy's conditions could be asked of.
func TestRoles(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	for predicate, want := range map[string]attest.Role{attest.PredicateCosignSign: attest.Signature, slsa: attest.Attestation} {
		evidence := l.evidence(t, verifytest.Claim{Signer: key, Statement: verifytest.Attestation(digest.String(), predicate, nil), NoLog: true})
		fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, noLog))
		check(t, fact, err, "")
		if fact.Role != want || (fact.Statement != nil) != (want == attest.Attestation) {
			t.Errorf("%s: proved a %s with %v, want a %s", predicate, fact.Role, fact.Statement, want)
		}
		if fact.Signer.KeyFingerprint == "" {
			t.Error("a key that proved something has no name, by which a threshold would count it")
		}
	}
}

// TestOffered: a signature has no type of statement that it could be another than.
func TestOffered(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Image: signature(nil), NoLog: true})
	evidence.PredicateType = attest.PredicateCosignSign
	fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, noLog))
	check(t, fact, err, "")
}

func TestTimestampAlone(t *testing.T) {
	l := newLab(t)
	past := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
	expired := l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = past })
	at := []verifytest.Stamp{{Time: past.Add(time.Minute)}}
	l.run(t, []row{
		{"expired now, stamped then", "it was valid at the timestamp's time", verifytest.Claim{Signer: expired, Image: signature(nil), NoLog: true, Stamps: at}, keyless(noLog), ""},
		{"expired now, not stamped", "there is no trusted time", verifytest.Claim{Signer: expired, Image: signature(nil), NoLog: true}, keyless(noLog), verify.ExpiredCertificate},
		{"an envelope, stamped then", "over the whole envelope", verifytest.Claim{Signer: expired, Statement: provenance(), NoLog: true, Stamps: at}, keyless(noLog), ""},
		{"an envelope, not stamped", "there is no trusted time", verifytest.Claim{Signer: expired, Statement: provenance(), NoLog: true}, keyless(noLog), verify.ExpiredCertificate},
	})
}

// TestNoTimestampAuthority: where no timestamp authority is trusted, a timestamp is neither proof
// nor fault.
func TestNoTimestampAuthority(t *testing.T) {
	l := newLab(t)
	var root map[string]any
	if err := json.Unmarshal(l.own.TrustedRoot(), &root); err != nil {
		t.Fatal(err)
	}
	delete(root, "timestampAuthorities")
	text, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	store, err := trust.New(trust.Options{TrustedRoot: text})
	if err != nil {
		t.Fatal(err)
	}
	l.verifier = cosign.New(store.Snapshot())
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	stamped := verifytest.Claim{Signer: key, Image: signature(nil), NoLog: true, Stamps: []verifytest.Stamp{{}}}
	l.run(t, []row{{"it is not required", "only the signature is required", stamped, byKey(key, noLog), ""}})
	evidence := l.evidence(t, stamped)
	_, err = l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, func(a *verify.Authority) { a.Log.Ignore, a.Timestamp.Required = true, true }))
	if err == nil {
		t.Error("a required timestamp that could not be verified was accepted")
	}
}

// TestTimes: the earliest trusted time counts, whichever it is.
func TestTimes(t *testing.T) {
	l := newLab(t)
	at := time.Now().Add(-24 * time.Hour).Truncate(time.Second).UTC()
	signer := l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = at.Add(-time.Minute) })
	for stamped, want := range map[time.Time]verify.Fact{
		at.Add(-30 * time.Second): {SignedAt: at.Add(-30 * time.Second), TimeSource: verify.StampTime},
		at.Add(30 * time.Second):  {SignedAt: at, TimeSource: verify.LogTime},
	} {
		fact, err := l.verifier.Verify(t.Context(), l.subject, l.evidence(t, verifytest.Claim{
			Signer: signer, Image: signature(nil), Time: at, Stamps: []verifytest.Stamp{{Time: stamped}},
		}), keyless(nil))
		check(t, fact, err, "")
		if !fact.SignedAt.Equal(want.SignedAt) || fact.TimeSource != want.TimeSource || len(fact.Signatures) != 1 {
			t.Errorf("logged at %s and stamped at %s: signed at %s by %s, want %s by %s", at, stamped, fact.SignedAt, fact.TimeSource, want.SignedAt, want.TimeSource)
		}
	}
}

// TestUnreadableCertificate: a certificate with contradictory names matches no identity,
// even where the policy requires no name.
func TestUnreadableCertificate(t *testing.T) {
	l := newLab(t)
	root := issue(t, nil, 100, 1000, authorityTemplate("root"))
	for broken, want := range map[string]verify.Code{"\x0c\x06issuer": "", "\xff": verify.Malformed} {
		leaf := issue(t, &root, 80, 500, x509.Certificate{
			Subject: pkix.Name{CommonName: "signer"}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage:     []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
			ExtraExtensions: []pkix.Extension{{Id: []int{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: []byte(broken)}},
		})
		fact, err := l.verifier.Verify(t.Context(), l.subject, signWith(t, leaf), verify.Authority{
			Name: "certificate", Log: verify.Log{Ignore: true},
			Certificate: &verify.Certificate{Chain: root.pem(), CT: verify.CT{Ignore: true}},
		})
		check(t, fact, err, want)
	}
}

func TestAccepts(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	signer := l.keyless(t, nil)
	claim := verifytest.Claim{Signer: key, Image: signature(nil), NoLog: true}
	hashed := func(hash string) verify.Authority {
		return verify.Authority{Name: "certificate", Log: verify.Log{Ignore: true}, Certificate: &verify.Certificate{Chain: signer.ChainPEM(), Hash: hash, CT: verify.CT{Ignore: true}}}
	}
	l.run(t, []row{
		{"its own format", "the authority accepts it", claim, byKey(key, func(a *verify.Authority) {
			a.Log.Ignore, a.Formats = true, []attest.Format{attest.Bundle, attest.Cosign}
		}), ""},
		{"notation's authority", "cosign's layers cannot prove it", claim, verify.Authority{Name: "n", Notation: &verify.Notation{CA: signer.ChainPEM()}}, verify.WrongFormat},
		{"a certificate's hash", "the control", verifytest.Claim{Signer: signer, Image: signature(nil), NoLog: true}, hashed("sha256"), ""},
		{"an unknown hash", "nothing can be checked with it", verifytest.Claim{Signer: signer, Image: signature(nil), NoLog: true}, hashed("md5"), verify.Malformed},
	})
}

// broken is a context that panics when it is asked, as a library might on foreign bytes.
type broken struct{ context.Context }

func (broken) Err() error { panic("broken") }

// TestPanic: a panic is no proof, whatever it came from.
func TestPanic(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Image: signature(nil), NoLog: true})
	fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, noLog))
	check(t, fact, err, "")
	fact, err = l.verifier.Verify(broken{t.Context()}, l.subject, evidence, byKey(key, noLog))
	check(t, fact, err, verify.Malformed)
	defer func() {
		if recover() == nil {
			t.Error("a verifier was made without trust")
		}
	}()
	cosign.New(nil)
}

// TestNotAsked: what could not be verified is no rejection.
func TestNotAsked(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Image: signature(nil), NoLog: true})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ask := range map[string]func() error{
		"an image without a digest": func() error {
			_, err := l.verifier.Verify(t.Context(), image.Pinned{}, evidence, byKey(key, noLog))
			return err
		},
		"a context that has ended": func() error {
			_, err := l.verifier.Verify(ended, l.subject, evidence, byKey(key, noLog))
			return err
		},
	} {
		err := ask()
		if _, isRejection := errors.AsType[*verify.Rejection](err); err == nil || isRejection {
			t.Errorf("%s: got %v, want an error that is no rejection", name, err)
		}
	}
}
