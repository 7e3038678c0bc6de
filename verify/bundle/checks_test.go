package bundle_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func TestTerms(t *testing.T) {
	l := newLab(t)
	signer, past := l.keyless(t, nil), time.Now().Add(-24*time.Hour).Truncate(time.Second)
	expired := l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = past })
	noSCT := l.keyless(t, func(i *verifytest.Identity) { i.NoSCT = true })
	statement := `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` + digest.Hex() + `"}}],"predicateType":"` + slsa + `","predicate":{}}`
	given := func(ignore bool) verify.Authority {
		return verify.Authority{Name: "certificate", Certificate: &verify.Certificate{Chain: noSCT.ChainPEM(), CT: verify.CT{Ignore: ignore}}}
	}
	tests := []row{
		{"a statement", "the control", verifytest.Claim{Signer: signer, Payload: []byte(statement)}, keyless(nil), ""},
		{"a statement under another type", "the signature is not over a statement", verifytest.Claim{Signer: signer, Payload: []byte(statement), PayloadType: "text/plain"}, keyless(nil), verify.Malformed},
		{"expired, with an entry that is asked for", "it was valid at the log's time", verifytest.Claim{Signer: expired, Statement: signature()}, keyless(nil), ""},
		{"expired, with an entry that is not asked for", "a log that is not asked gives no time", verifytest.Claim{Signer: expired, Statement: signature()}, keyless(noLog), verify.ExpiredCertificate},
		{"a given chain, no SCT", "certificate transparency is asked for", verifytest.Claim{Signer: noSCT, Statement: signature()}, given(false), verify.NoSCT},
		{"a given chain, SCT not asked for", "the policy does not require it", verifytest.Claim{Signer: noSCT, Statement: signature()}, given(true), ""},
	}
	l.play(t, tests)
}

// TestEntries: a fact names the log entries that were proved, and no others.
func TestEntries(t *testing.T) {
	l := newLab(t)
	signer := l.keyless(t, nil)
	stamps := []verifytest.Stamp{{}}
	tests := []struct {
		reason    string
		records   []verifytest.Record
		authority verify.Authority
		want      []string
	}{
		{"one", nil, keyless(nil), []string{l.own.Rekor.ID()}},
		{"the log is not consulted", nil, keyless(noLog), nil},
		{"one of an untrusted log beside it", []verifytest.Record{{Log: l.own.Rekor2}, {Log: l.foreign.Rekor}}, keyless(nil), []string{l.own.Rekor2.ID()}},
		{"one without a promise, of an untrusted log", []verifytest.Record{{Log: l.own.Rekor2}, {Log: l.foreign.Rekor2}}, keyless(nil), []string{l.own.Rekor2.ID()}},
		{"next to one with a wrong promise", []verifytest.Record{{}, {Fault: verifytest.WrongPromise}}, keyless(nil), []string{l.own.Rekor.ID()}},
		{"both", []verifytest.Record{{Log: l.own.Rekor2}, {}}, keyless(nil), []string{l.own.Rekor2.ID(), l.own.Rekor.ID()}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			fact, err := l.verify(t, verifytest.Claim{Signer: signer, Statement: signature(), Records: test.records, Stamps: stamps}, test.authority)
			check(t, fact, err, "")
			var got []string
			for _, entry := range fact.Entries {
				got = append(got, entry.LogID)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestCarriedChain bounds the certificates that travel along.
func TestCarriedChain(t *testing.T) {
	l := newLab(t)
	evidence := l.evidence(t, verifytest.Claim{Signer: l.keyless(t, nil), Statement: signature(), Version: "0.2"})
	for count, want := range map[int]verify.Code{trust.MaxChain: "", trust.MaxChain + 1: verify.Malformed} {
		var document map[string]any
		if err := json.Unmarshal(evidence.Payload, &document); err != nil {
			t.Fatal(err)
		}
		chain := document["verificationMaterial"].(map[string]any)["x509CertificateChain"].(map[string]any)
		carried := chain["certificates"].([]any)
		for len(carried) < count {
			carried = append(carried, carried[len(carried)-1])
		}
		chain["certificates"] = carried
		long := evidence
		long.Payload = verifytest.Must(json.Marshal(document))
		fact, err := l.verifier.Verify(t.Context(), l.subject, long, keyless(nil))
		check(t, fact, err, want)
	}
}

// TestOtherAlgorithm: where the bytes are at hand, a statement may name them by another
// algorithm than the digest's; but it must name them.
func TestOtherAlgorithm(t *testing.T) {
	l := newLab(t)
	signer := l.keyless(t, nil)
	for content, good := range map[string]bool{string(manifest): true, "other": false} {
		sum := sha512.Sum512([]byte(content))
		payload := verifytest.Must(l.own.Bundle(verifytest.Claim{Signer: signer, Statement: &verifytest.Statement{
			Subjects: []verifytest.Subject{{Digest: "sha512:" + hex.EncodeToString(sum[:])}},
		}}))
		_, err := l.verifier.Prove(t.Context(), bundle.Artifact{Digest: digest, Content: manifest}, payload, keyless(nil))
		if (err == nil) != good {
			t.Errorf("a statement about %q: got %v", content, err)
		}
		if _, err := l.verifier.Prove(t.Context(), bundle.Artifact{Digest: digest}, payload, keyless(nil)); err == nil {
			t.Error("a statement that does not name the digest was taken for one about it")
		}
	}
}

// broken is a context that panics when it is asked, as a library might on foreign bytes.
type broken struct{ context.Context }

func (broken) Err() error { panic("broken") }

// TestPanic: a panic is no proof, whatever it came from.
func TestPanic(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Statement: signature()})
	fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, nil))
	check(t, fact, err, "")
	fact, err = l.verifier.Verify(broken{t.Context()}, l.subject, evidence, byKey(key, nil))
	check(t, fact, err, verify.Malformed)
	defer func() {
		if recover() == nil {
			t.Error("a verifier was made without trust")
		}
	}()
	bundle.New(nil)
}

// TestNotAsked: what could not be verified is no rejection.
func TestNotAsked(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Statement: signature()})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ask := range map[string]func() (verify.Fact, error){
		"an image without a digest": func() (verify.Fact, error) {
			return l.verifier.Verify(t.Context(), image.Pinned{}, evidence, byKey(key, nil))
		},
		"an artifact without a digest": func() (verify.Fact, error) {
			return l.verifier.Prove(t.Context(), bundle.Artifact{}, evidence.Payload, byKey(key, nil))
		},
		"a context that has ended": func() (verify.Fact, error) {
			return l.verifier.Verify(ended, l.subject, evidence, byKey(key, nil))
		},
	} {
		_, err := ask()
		if _, isRejection := errors.AsType[*verify.Rejection](err); err == nil || isRejection {
			t.Errorf("%s: got %v, want an error that is no rejection", name, err)
		}
	}
}

// TestFormats: an authority that accepts this format beside others is proved in it.
func TestFormats(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	formats := func(list ...attest.Format) verify.Authority {
		return byKey(key, func(a *verify.Authority) { a.Formats = list })
	}
	for _, test := range []struct {
		authority verify.Authority
		want      verify.Code
	}{
		{formats(), ""},
		{formats(attest.Cosign, attest.Bundle), ""},
		{formats(attest.Cosign), verify.WrongFormat},
		{verify.Authority{Name: "n", Notation: &verify.Notation{CA: l.own.CA.ChainPEM()}}, verify.WrongFormat},
	} {
		fact, err := l.verify(t, verifytest.Claim{Signer: key, Statement: signature()}, test.authority)
		check(t, fact, err, test.want)
	}
}

// TestOffered: a signature has no type of statement that it could be another than.
func TestOffered(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Statement: signature()})
	evidence.PredicateType = slsa
	fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, nil))
	check(t, fact, err, "")
	if fact.Role != attest.Signature {
		t.Errorf("proved a %s, want a signature", fact.Role)
	}
}

// TestBound: a bundle as long as may be is read, and one byte more is not.
func TestBound(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Statement: signature()})
	text := evidence.Payload
	for size, want := range map[int]verify.Code{bundle.MaxBundle: "", bundle.MaxBundle + 1: verify.Malformed} {
		evidence.Payload = append(bytes.Clone(text), bytes.Repeat([]byte(" "), size-len(text))...)
		fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, nil))
		check(t, fact, err, want)
	}
}

// TestTwoIssuers: a certificate that names two issuers matches no identity, even where the
// policy requires no name.
func TestTwoIssuers(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	payload := []byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` + digest.Hex() + `"}}],"predicateType":"` + slsa + `","predicate":{}}`)
	sum := sha256.Sum256(dsse.PAE("application/vnd.in-toto+json", payload))
	signed := verifytest.Must(ecdsa.SignASN1(rand.Reader, key, sum[:]))
	for second, want := range map[string]verify.Code{"issuer": "", "others": verify.Malformed} {
		template := x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "signer"}, EmailAddresses: []string{"dev@example.org"},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
			ExtraExtensions: []pkix.Extension{
				{Id: []int{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte("issuer")},
				{Id: []int{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: []byte("\x0c\x06" + second)},
			},
		}
		leaf := verifytest.Must(x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key))
		evidence := attest.Evidence{Format: attest.Bundle, Origin: attest.Origin{Via: "referrers"}, Payload: verifytest.Must(json.Marshal(map[string]any{
			"mediaType":            "application/vnd.dev.sigstore.bundle.v0.3+json",
			"verificationMaterial": map[string]any{"certificate": map[string]any{"rawBytes": leaf}},
			"dsseEnvelope": map[string]any{
				"payload": payload, "payloadType": "application/vnd.in-toto+json",
				"signatures": []any{map[string]any{"sig": signed}},
			},
		}))}
		fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, verify.Authority{
			Name: "certificate", Log: verify.Log{Ignore: true},
			Certificate: &verify.Certificate{Leaf: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf}), CT: verify.CT{Ignore: true}},
		})
		check(t, fact, err, want)
	}
}
