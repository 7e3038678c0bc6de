package notation_test

import (
	"bytes"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify/notation"
)

// TestSignaturesOfDocuments: a document that is signed anew has another signature; a copy of a
// signature, or the twin that anyone can compute, has not.
func TestSignaturesOfDocuments(t *testing.T) {
	ca := newCA(t, "root")
	by := newSigner(t, ca, "release")
	target := image.Descriptor{MediaType: image.MediaTypeManifest, Digest: image.DigestOf([]byte("referrer")), Size: 600}
	document := func() attest.Evidence {
		e := sign(t, order{by: by, target: target})
		e.Role, e.Target, e.Content, e.PredicateType = attest.Attestation, target, []byte(`{}`), "sbom/cyclone-dx"
		return e
	}
	first := document()
	copied, twin := first, first
	twin.Payload = mirrored(t, first.Payload)
	known := func(e attest.Evidence) []string {
		t.Helper()
		fact, err := newVerifier(t, notation.Options{}).Verify(t.Context(), pinned(t, manifest), e, trusting(ca))
		if err != nil || len(fact.Signatures) != 1 {
			t.Fatalf("%v, %v", fact.Signatures, err)
		}
		return fact.Signatures
	}
	for _, c := range []struct {
		reason string
		other  attest.Evidence
		same   bool
	}{{"a copy", copied, true}, {"the twin", twin, true}, {"a new signature", document(), false}} {
		if same := slices.Equal(known(first), known(c.other)); same != c.same {
			t.Errorf("%s: the same: %t", c.reason, same)
		}
	}
}

// mirrored replaces the signature (r, s) of a JWS envelope by ES256 with (r, -s).
func mirrored(t *testing.T, envelope []byte) []byte {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(envelope, &members); err != nil {
		t.Fatal(err)
	}
	signature, err := base64.RawURLEncoding.DecodeString(members["signature"].(string))
	if err != nil || len(signature) != 64 {
		t.Fatalf("a signature of %d bytes, want r and s of P-256: %v", len(signature), err)
	}
	s := new(big.Int).SetBytes(signature[32:])
	twin := slices.Concat(signature[:32], s.Sub(elliptic.P256().Params().N, s).FillBytes(make([]byte, 32)))
	members["signature"] = base64.RawURLEncoding.EncodeToString(twin)
	out, err := json.Marshal(members)
	if err != nil || bytes.Equal(out, envelope) {
		t.Fatal("the envelope was not changed")
	}
	return out
}
