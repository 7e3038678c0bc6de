package notation_test

import (
	"context"
	"fmt"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/notation"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func Example() {
	manifest := image.Descriptor{MediaType: image.MediaTypeManifest, Digest: image.DigestOf([]byte("{}")), Size: 2}
	notary := verifytest.Must(verifytest.NewNotary(verifytest.NotaryOptions{Name: "release"}))
	envelope := verifytest.Must(notary.Sign(verifytest.Notation{Target: ocispec.Descriptor{
		MediaType: manifest.MediaType, Digest: godigest.Digest(manifest.Digest.String()), Size: manifest.Size,
	}}))
	subject := verifytest.Must(verifytest.Must(image.Parse("registry.example/app:v1")).Pin(manifest))
	evidence := attest.Evidence{Format: attest.Notation, Role: attest.Signature, MediaType: verifytest.NotationJWS, Payload: envelope}

	verifier := verifytest.Must(notation.New(notation.Options{})) // no requests about revocation
	for _, identity := range []string{notary.Identity(), "x509.subject: C=XX, ST=None, O=elsewhere"} {
		fact, err := verifier.Verify(context.Background(), subject, evidence, verify.Authority{
			Name:     "release",
			Notation: &verify.Notation{CA: notary.RootPEM(), Identities: []string{identity}},
		})
		if err != nil {
			fmt.Println("refused:", err)
			continue
		}
		fmt.Println("proved: signed by", fact.Signer.Subject)
	}
	// Output:
	// proved: signed by CN=release,O=verifytest,ST=None,C=XX
	// refused: wrong-identity: expected x509.subject: C=XX, ST=None, O=elsewhere, found x509.subject: CN=release,O=verifytest,ST=None,C=XX
}
