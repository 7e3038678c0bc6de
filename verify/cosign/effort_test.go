package cosign_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestEffort: expensive input is refused before it is computed with. The
// keys would take a third of a second, each time that one is used.
func TestEffort(t *testing.T) {
	l := newLab(t)
	const long = 20 << 13 // 20 KiB
	signer := l.keyless(t, nil)
	certificate := func(bits int) *x509.Certificate {
		return verifytest.Must(verifytest.CertificateOf(verifytest.LongKey(bits)))
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	key := block("PUBLIC KEY", verifytest.Must(x509.MarshalPKIXPublicKey(verifytest.LongKey(long))))
	type (
		object      = map[string]any
		annotations = map[string]string
	)
	claim := func(stamps ...verifytest.Stamp) verifytest.Claim {
		return verifytest.Claim{Signer: signer, Image: signature(nil), Stamps: stamps}
	}
	chain := func(bits int) func(annotations) {
		return func(a annotations) { a[chainAnnotation] += block("CERTIFICATE", certificate(bits).Raw) }
	}
	entry := func(kind string, spec object) func(annotations) {
		return func(a annotations) {
			var bundle object
			if err := json.Unmarshal([]byte(a[entryAnnotation]), &bundle); err != nil {
				t.Fatal(err)
			}
			bundle["Payload"].(object)["body"] = verifytest.Must(json.Marshal(object{"apiVersion": "0.0.1", "kind": kind, "spec": spec}))
			a[entryAnnotation] = string(verifytest.Must(json.Marshal(bundle)))
		}
	}
	as := func(annotations) {}
	tests := []struct {
		reason string
		claim  verifytest.Claim
		change func(annotations)
		says   string
	}{
		{"it is genuine", claim(), as, ""},
		{"a chain of the longest key", claim(), chain(8192), ""},
		{"a chain of a longer one", claim(), chain(long), "the RSA key of 163840 bits"},
		{"a signer's certificate of a longer key", claim(), func(a annotations) {
			a[certificateAnnotation] = block("CERTIFICATE", certificate(long).Raw)
		}, "the RSA key of 163840 bits"},
		{"an entry by a longer key", claim(), entry("hashedrekord", object{"signature": object{"publicKey": object{"content": []byte(key)}}}), "the log entry: the RSA key of 163840 bits"},
		{"a proposal as the entry", claim(), entry("intoto", object{"content": object{"envelope": "{}"}}), "a text as its envelope, which only a proposal has"},
		{"a timestamp in a crowd", claim(verifytest.Stamp{TSA: verifytest.Must(l.own.TSA.Crowded(6))}), as, "certificates that have issued one another"},
		{"a timestamp beside the longest key", claim(verifytest.Stamp{Beside: certificate(8192)}), as, ""},
		{"a timestamp beside a longer one", claim(verifytest.Stamp{Beside: certificate(long)}), as, "the timestamp: the RSA key of 163840 bits"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			evidence := l.evidence(t, test.claim)
			evidence.Annotations = maps.Clone(evidence.Annotations)
			test.change(evidence.Annotations)
			fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, keyless(nil))
			if test.says == "" {
				check(t, fact, err, "")
				return
			}
			check(t, fact, err, verify.Malformed)
			if err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %q, want %q in it", err, test.says)
			}
		})
	}
}
