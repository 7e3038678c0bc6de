package cosign_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/digitorus/timestamp"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// holder is a certificate and its key.
type holder struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func (h holder) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.certificate.Raw})
}

// issue makes a certificate that is valid from a number of days ago until a
// number of days from now.
func issue(t testing.TB, by *holder, from, until int, template x509.Certificate) holder {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(int64(from)*1000 + int64(until))
	template.NotBefore, template.NotAfter = time.Now().AddDate(0, 0, -from), time.Now().AddDate(0, 0, until)
	template.BasicConstraintsValid = true
	parent := &template
	signer := key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return holder{certificate, key}
}

func authorityTemplate(name string) x509.Certificate {
	return x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, KeyUsage: x509.KeyUsageCertSign}
}

// signWith writes a layer without log entry.
func signWith(t testing.TB, leaf holder) attest.Evidence {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"critical": map[string]any{
		"identity": map[string]string{"docker-reference": "registry.example/org/app"},
		"image":    map[string]string{"docker-manifest-digest": digest.String()},
		"type":     "cosign container image signature",
	}})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(payload)
	signature, err := ecdsa.SignASN1(rand.Reader, leaf.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return attest.Evidence{
		Format: attest.Cosign, Role: attest.Signature, Payload: payload, Origin: attest.Origin{Via: "sig"},
		Annotations: map[string]string{
			signatureAnnotation:   base64.StdEncoding.EncodeToString(signature),
			certificateAnnotation: string(leaf.pem()),
		},
	}
}

// stamp adds a timestamp of now to a layer.
func stamp(t testing.TB, tsa holder, evidence attest.Evidence) attest.Evidence {
	t.Helper()
	signature, err := base64.StdEncoding.DecodeString(evidence.Annotations[signatureAnnotation])
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(signature)
	made := timestamp.Timestamp{
		HashAlgorithm: crypto.SHA256, HashedMessage: sum[:], Time: time.Now().UTC().Truncate(time.Second),
		Policy: []int{1, 2, 3}, AddTSACertificate: true,
	}
	response, err := made.CreateResponseWithOpts(tsa.certificate, tsa.key, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"SignedRFC3161Timestamp": response})
	if err != nil {
		t.Fatal(err)
	}
	evidence.Annotations = maps.Clone(evidence.Annotations)
	evidence.Annotations["dev.sigstore.cosign/rfc3161timestamp"] = string(text)
	return evidence
}

// TestExpiredIntermediate is GHSA-wfqv-66vq-46rm: an intermediate that expired
// before the leaf must not count unless a log entry proves an earlier time.
func TestExpiredIntermediate(t *testing.T) {
	l := newLab(t)
	name, err := url.Parse(workflow)
	if err != nil {
		t.Fatal(err)
	}
	leaf := x509.Certificate{
		Subject: pkix.Name{CommonName: "signer"}, URIs: []*url.URL{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: []int{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer)}},
	}
	root := issue(t, nil, 100, 1000, authorityTemplate("root"))
	tsaRoot := issue(t, nil, 100, 1000, authorityTemplate("timestamps"))
	tsa := issue(t, &tsaRoot, 100, 1000, x509.Certificate{
		Subject: pkix.Name{CommonName: "timestamp"}, KeyUsage: x509.KeyUsageDigitalSignature,
		// Critical and the only usage, as RFC 3161 has it.
		ExtraExtensions: []pkix.Extension{{Id: []int{2, 5, 29, 37}, Critical: true, Value: []byte{0x30, 0x0a, 0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08}}},
	})
	for until, want := range map[int]verify.Code{500: "", -1: verify.ExpiredCertificate} {
		intermediate := issue(t, &root, 90, until, authorityTemplate("intermediate"))
		evidence := signWith(t, issue(t, &intermediate, 80, 500, leaf))
		stamped := stamp(t, tsa, evidence)
		chain := append(intermediate.pem(), root.pem()...)
		for kind, authority := range map[string]verify.Authority{
			"certificate": {Certificate: &verify.Certificate{Chain: chain, CT: verify.CT{Ignore: true}}},
			"certificate and timestamp": {
				Certificate: &verify.Certificate{Chain: chain, CT: verify.CT{Ignore: true}},
				Timestamp:   verify.Timestamp{Required: true, Chain: append(tsa.pem(), tsaRoot.pem()...)},
			},
			"keyless": {Keyless: &verify.Keyless{
				Identities: []verify.Identity{{Issuer: verify.Exactly(issuer), Subject: verify.Exactly(workflow)}},
				Roots:      chain, CT: verify.CT{Ignore: true},
			}},
		} {
			t.Run(fmt.Sprintf("%s, intermediate until day %d", kind, until), func(t *testing.T) {
				authority.Name, authority.Log.Ignore = kind, true
				timed, offered := authority.Timestamp.Required, evidence
				if timed {
					offered = stamped
				}
				fact, err := l.verifier.Verify(t.Context(), l.subject, offered, authority)
				check(t, fact, err, want)
				if err == nil && fact.Expires.IsZero() != timed {
					t.Errorf("expires at %s; it rests on a certificate that is valid now: %t", fact.Expires, !timed)
				}
			})
		}
	}
}

// TestLongChain bounds the input of the chain building.
func TestLongChain(t *testing.T) {
	l := newLab(t)
	signer := l.keyless(t, nil)
	evidence := l.evidence(t, verifytest.Claim{Signer: signer, Image: signature(nil)})
	link := issue(t, nil, 1, 1, authorityTemplate("link"))
	for links, want := range map[int]verify.Code{trust.MaxChain: "", trust.MaxChain + 1: verify.Malformed} {
		long := evidence
		long.Annotations = maps.Clone(evidence.Annotations)
		long.Annotations[chainAnnotation] = string(bytes.Repeat(link.pem(), links))
		fact, err := l.verifier.Verify(t.Context(), l.subject, long, keyless(nil))
		check(t, fact, err, want)
	}
}

// TestForeignAnnotations puts there what parsers trip over.
func TestForeignAnnotations(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	good := l.evidence(t, verifytest.Claim{Signer: key, Image: signature(nil)})
	entry := func(body any) string {
		text, err := json.Marshal(map[string]any{"SignedEntryTimestamp": "AA==", "Payload": map[string]any{"body": body, "logID": "00"}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	tests := []struct{ name, annotation, text string }{
		{"signature is no base64", signatureAnnotation, "%"},
		{"no signature", signatureAnnotation, ""},
		{"signature past the bound", signatureAnnotation, strings.Repeat("A", cosign.MaxSignature+4)},
		{"certificate is no PEM", certificateAnnotation, "certificate"},
		{"certificate is a key", certificateAnnotation, string(key.PublicPEM())},
		{"certificate past the bound", certificateAnnotation, strings.Repeat(" ", trust.MaxPEM+1)},
		{"chain is no PEM", chainAnnotation, "chain"},
		{"entry is no JSON", entryAnnotation, "{"},
		{"entry without body", entryAnnotation, "{}"},
		{"entry with a number as body", entryAnnotation, entry(1)},
		{"entry with a body that is no base64", entryAnnotation, entry("%")},
		{"entry past the bound", entryAnnotation, good.Annotations[entryAnnotation] + strings.Repeat(" ", cosign.MaxEntry)},
		{"timestamp is no JSON", "dev.sigstore.cosign/rfc3161timestamp", "["},
		{"timestamp is empty", "dev.sigstore.cosign/rfc3161timestamp", "{}"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bad := good
			bad.Annotations = maps.Clone(good.Annotations)
			bad.Annotations[test.annotation] = test.text
			fact, err := l.verifier.Verify(t.Context(), l.subject, bad, byKey(key, nil))
			check(t, fact, err, verify.Malformed)
		})
	}
	for name, body := range map[string]string{
		"empty body": "", "body of no kind": "{}", "unknown kind": `{"apiVersion":"0.0.1","kind":"helm","spec":{}}`,
		"hashedrekord without content": `{"apiVersion":"0.0.1","kind":"hashedrekord","spec":{}}`,
		"hashedrekord without key":     `{"apiVersion":"0.0.1","kind":"hashedrekord","spec":{"data":{"hash":{"algorithm":"sha256","value":"` + strings.Repeat("0", 64) + `"}},"signature":{"content":"AA==","publicKey":{"content":"AA=="}}}}`,
		"dsse without content":         `{"apiVersion":"0.0.1","kind":"dsse","spec":{}}`,
		"intoto without content":       `{"apiVersion":"0.0.2","kind":"intoto","spec":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			bad.Annotations = maps.Clone(good.Annotations)
			bad.Annotations[entryAnnotation] = entry(encode(body))
			_, err := l.verifier.Verify(t.Context(), l.subject, bad, byKey(key, nil))
			if rejection, ok := errors.AsType[*verify.Rejection](err); !ok || (rejection.Code != verify.BadLogEntry && rejection.Code != verify.Malformed) {
				t.Errorf("got %v, want a bad log entry", err)
			}
		})
	}
}

// TestUnavailable: missing trust is no reason against a signature.
func TestUnavailable(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Image: signature(nil)})
	tests := map[string]verify.Authority{
		"unknown log":      byKey(key, func(a *verify.Authority) { a.Log.URL = "https://rekor.unknown.example" }),
		"unresolved key":   {Name: "a", Key: &verify.Key{Ref: "k8s://ns/name"}},
		"broken key":       {Name: "a", Key: &verify.Key{PEM: []byte("key")}},
		"broken root":      byKey(key, func(a *verify.Authority) { a.TrustedRoot = []byte("{}") }),
		"broken log key":   byKey(key, func(a *verify.Authority) { a.Log.Keys = []byte("key") }),
		"two kinds at all": {Name: "a", Key: &verify.Key{PEM: key.PublicPEM()}, Keyless: &verify.Keyless{}},
	}
	for name, authority := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := l.verifier.Verify(t.Context(), l.subject, evidence, authority)
			if _, isRejection := errors.AsType[*verify.Rejection](err); err == nil || isRejection {
				t.Errorf("got %v, want an error that is no rejection", err)
			}
		})
	}
	if _, err := l.verifier.Verify(t.Context(), image.Pinned{}, evidence, byKey(key, nil)); err == nil {
		t.Error("an image without a digest was proved")
	}
}

// TestConcurrent shares verifier, evidence and authority.
func TestConcurrent(t *testing.T) {
	l := newLab(t)
	evidence := l.evidence(t, verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.URI, i.Username = "", "dev!example.org" }), Image: signature(nil), Stamps: []verifytest.Stamp{{}}})
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
		{Signer: key, Image: signature(nil)}, {Signer: key, Statement: provenance()},
		{Signer: l.keyless(f, nil), Image: signature(nil), Stamps: []verifytest.Stamp{{}}},
	} {
		e := l.evidence(f, claim)
		f.Add(e.Role == attest.Attestation, e.Payload, e.Annotations[signatureAnnotation], e.Annotations[certificateAnnotation], e.Annotations[entryAnnotation], e.Annotations["dev.sigstore.cosign/rfc3161timestamp"])
	}
	authorities := []verify.Authority{byKey(stranger, nil), byKey(stranger, noLog), keyless(func(a *verify.Authority) {
		a.Keyless.Identities[0].Subject = verify.Exactly("nobody")
	})}
	f.Fuzz(func(t *testing.T, isAttestation bool, payload []byte, signature, certificate, entry, timestamp string) {
		evidence := attest.Evidence{Format: attest.Cosign, Role: attest.Signature, Payload: payload, Annotations: map[string]string{
			signatureAnnotation: signature, certificateAnnotation: certificate,
			entryAnnotation: entry, "dev.sigstore.cosign/rfc3161timestamp": timestamp,
		}}
		if isAttestation {
			evidence.Role = attest.Attestation
		}
		for _, authority := range authorities {
			_, err := l.verifier.Verify(t.Context(), l.subject, evidence, authority)
			if _, isRejection := errors.AsType[*verify.Rejection](err); !isRejection {
				t.Errorf("got %v, want a rejection: no key of the authority signed this", err)
			}
		}
	})
}

// TestPredicate: an envelope never passes for one of another type than it was
// offered as (GHSA-w6c6-c85g-mmv6).
func TestPredicate(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	evidence := l.evidence(t, verifytest.Claim{Signer: key, Statement: provenance(), NoLog: true})
	for offered, want := range map[string]verify.Code{"": "", slsa: "", "https://spdx.dev/Document": verify.WrongPredicate} {
		evidence.PredicateType = offered
		fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, byKey(key, noLog))
		check(t, fact, err, want)
		if err == nil && (fact.Role != attest.Attestation || fact.Statement.PredicateType != slsa) {
			t.Errorf("proved a %s of %+v, want the attestation", fact.Role, fact.Statement)
		}
	}
}

// TestFact checks the content of a fact.
func TestFact(t *testing.T) {
	l := newLab(t)
	at := time.Now().Add(-24 * time.Hour).Truncate(time.Second).UTC()
	signer := l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = at.Add(-time.Minute) })
	evidence := l.evidence(t, verifytest.Claim{
		Signer: signer, Image: signature(map[string]any{"env": "prod", "n": 1}), Time: at,
		Stamps: []verifytest.Stamp{{Time: at.Add(-30 * time.Second)}},
	})
	fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, keyless(nil))
	if err != nil {
		t.Fatal(err)
	}
	if fact.Role != attest.Signature || fact.Format != attest.Cosign || fact.Statement != nil {
		t.Errorf("proved a %s in %s with %v", fact.Role, fact.Format, fact.Statement)
	}
	if !fact.SignedAt.Equal(at.Add(-30*time.Second)) || !fact.Expires.IsZero() {
		t.Errorf("signed at %s, expires %s; want the earlier of two times, and no end", fact.SignedAt, fact.Expires)
	}
	if len(fact.Entries) != 1 || fact.Entries[0].LogID != l.own.Rekor.ID() || !fact.Entries[0].Time.Equal(at) {
		t.Errorf("entries %+v", fact.Entries)
	}
	if fact.Signer.Subject != workflow || fact.Signer.Issuer != issuer || fact.Signer.Extensions["githubWorkflowTrigger"] != "push" {
		t.Errorf("signed by %+v", fact.Signer)
	}
	if len(fact.Annotations) != 1 || fact.Annotations["env"] != "prod" {
		t.Errorf("annotations %v, want the texts", fact.Annotations)
	}
}

func BenchmarkVerify(b *testing.B) {
	l := newLab(b)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	for name, test := range map[string]struct {
		claim     verifytest.Claim
		authority verify.Authority
	}{
		"key":     {verifytest.Claim{Signer: key, Image: signature(nil), NoLog: true}, byKey(key, noLog)},
		"keyless": {verifytest.Claim{Signer: l.keyless(b, nil), Image: signature(nil)}, keyless(nil)},
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
