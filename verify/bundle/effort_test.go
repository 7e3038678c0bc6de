package bundle_test

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"slices"
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
	crowded, authority := verifytest.Must(l.own.TSA.Crowded(6)), verifytest.Must(l.own.CA.Crowded(6))
	certificate := func(bits int) *x509.Certificate {
		return verifytest.Must(verifytest.CertificateOf(verifytest.LongKey(bits)))
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: verifytest.Must(x509.MarshalPKIXPublicKey(verifytest.LongKey(long)))})
	// sealed is read again and again for each of its elements by a BER parser.
	var sealed []byte
	for i := range 30 {
		sealed = append(sealed, 0x30, 2, 0x30, byte(4*(30-i)-2))
	}
	response := verifytest.Must(asn1.Marshal([]asn1.RawValue{
		{Tag: asn1.TagSequence, IsCompound: true, Bytes: []byte{asn1.TagInteger, 1, 0}},
		{Tag: asn1.TagSequence, IsCompound: true, Bytes: append(sealed, asn1.TagNull, 0)},
	}))
	type object = map[string]any
	first := func(material object, list string) object { return material[list].([]any)[0].(object) }
	claim := func(version string, stamps ...verifytest.Stamp) verifytest.Claim {
		return verifytest.Claim{Signer: signer, Statement: signature(), Version: version, Stamps: stamps}
	}
	carries := func(c *x509.Certificate) func(object) {
		return func(material object) {
			chain := material["x509CertificateChain"].(object)
			chain["certificates"] = append(chain["certificates"].([]any), object{"rawBytes": c.Raw})
		}
	}
	entry := func(spec object) func(object) {
		return func(material object) {
			first(material, "tlogEntries")["canonicalizedBody"] = verifytest.Must(json.Marshal(object{"apiVersion": "0.0.1", "kind": "dsse", "spec": spec}))
		}
	}
	// signed has the checkpoint's signature a number of times.
	signed := func(times int) func(object) {
		return func(material object) {
			checkpoint := first(material, "tlogEntries")["inclusionProof"].(object)["checkpoint"].(object)
			head, signature, found := strings.Cut(checkpoint["envelope"].(string), "\n\n")
			if !found {
				t.Fatalf("checkpoint %q", checkpoint)
			}
			checkpoint["envelope"] = head + "\n\n" + strings.Repeat(signature, times)
		}
	}
	tests := []struct {
		reason string
		claim  verifytest.Claim
		change func(object)
		says   string
	}{
		{"a chain of the longest key", claim("0.1"), carries(certificate(8192)), ""},
		{"a chain of a longer one", claim("0.1"), carries(certificate(long)), "a certificate: the RSA key of 163840 bits"},
		{"a signer's certificate", claim("0.3"), func(object) {}, ""},
		{"a signer's certificate of a longer key", claim("0.3"), func(material object) {
			material["certificate"].(object)["rawBytes"] = certificate(long).Raw
		}, "a certificate: the RSA key of 163840 bits"},
		{"an entry by a longer key", claim("0.3"), entry(object{"signatures": []any{object{"signature": "AA==", "verifier": encoded}}}), "the log entry: the RSA key of 163840 bits"},
		{"a proposal as the entry", claim("0.3"), entry(object{"proposedContent": object{"envelope": "{}", "verifiers": []any{}}}), "a member proposedContent, which only a proposal has"},
		{"a checkpoint that is signed twice", claim("0.3"), signed(2), ""},
		{"a checkpoint that is signed a thousand times", claim("0.3"), signed(1000), "the checkpoint has "},
		{"a timestamp beside the longest key", claim("0.3", verifytest.Stamp{Beside: certificate(8192)}), func(object) {}, ""},
		{"a timestamp beside a longer one", claim("0.3", verifytest.Stamp{Beside: certificate(long)}), func(object) {}, "the timestamp: the RSA key of 163840 bits"},
		{"the second of two timestamps", claim("0.3", verifytest.Stamp{}, verifytest.Stamp{Beside: certificate(long)}), func(object) {}, "the timestamp: the RSA key of 163840 bits"},
		{"four timestamps", claim("0.3", slices.Repeat([]verifytest.Stamp{{}}, 4)...), func(object) {}, ""},
		{"five", claim("0.3", slices.Repeat([]verifytest.Stamp{{}}, 5)...), func(object) {}, "the bundle has 5 timestamps, more than the bound of 4"},
		{"a timestamp in a crowd", claim("0.3", verifytest.Stamp{TSA: crowded}), func(object) {}, "certificates that have issued one another"},
		{"a chain in a crowd", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.CA = authority }), Statement: signature(), Version: "0.1"}, func(object) {}, ""},
		{"a timestamp that BER reads for years", claim("0.3", verifytest.Stamp{}), func(material object) {
			first(material["timestampVerificationData"].(object), "rfc3161Timestamps")["signedTimestamp"] = response
		}, "the timestamp: its token is not in DER"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			evidence := l.evidence(t, test.claim)
			var document object
			if err := json.Unmarshal(evidence.Payload, &document); err != nil {
				t.Fatal(err)
			}
			test.change(document["verificationMaterial"].(object))
			evidence.Payload = verifytest.Must(json.Marshal(document))
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
