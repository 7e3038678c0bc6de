package notation_test

import (
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/verify/notation"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestClaimed: the holder of the certificate is read without trust, and nothing of bytes that are no
// envelope.
func TestClaimed(t *testing.T) {
	notary := verifytest.Must(verifytest.NewNotary(verifytest.NotaryOptions{Name: "release"}))
	for _, mediaType := range []string{verifytest.NotationJWS, verifytest.NotationCOSE} {
		envelope := verifytest.Must(notary.Sign(verifytest.Notation{
			MediaType: mediaType, Target: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("x"), Size: 1},
		}))
		e := attest.Evidence{Format: attest.Notation, Role: attest.Signature, MediaType: mediaType, Payload: envelope}
		signer, err := notation.Claimed(e)
		if err != nil || !strings.Contains(signer.Subject, "release") || signer.Issuer == "" {
			t.Errorf("%s: %+v, %v", mediaType, signer, err)
		}
		e.Payload = []byte("{}")
		if signer, err := notation.Claimed(e); err == nil || signer.Subject != "" || strings.Contains(err.Error(), "panicked") {
			t.Errorf("%s: bytes that are no envelope: %+v, %v", mediaType, signer, err)
		}
	}
}
