package cosign_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// A signature by a key is proved without any root of trust, and one by another
// key is refused with its reason.
func Example() {
	digest := image.DigestOf([]byte("the image's manifest"))
	ref, _ := image.Parse("registry.example/app:v1")
	subject, _ := ref.Pin(image.Descriptor{Digest: digest})

	sigstore := verifytest.Must(verifytest.New(verifytest.Options{}))
	ours := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	theirs := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	layer := verifytest.Must(sigstore.Layer(verifytest.Claim{
		Signer: ours, NoLog: true,
		Image: &verifytest.SimpleSigning{Reference: "registry.example/app", Digest: digest.String()},
	}))
	evidence := attest.Evidence{
		Format: attest.Cosign, Role: attest.Signature, Payload: layer.Payload, Annotations: layer.Annotations,
	}

	store, _ := trust.New(trust.Options{})
	verifier := cosign.New(store.Snapshot())
	for _, signer := range []*verifytest.Signer{ours, theirs} {
		_, err := verifier.Verify(context.Background(), subject, evidence, verify.Authority{
			Name: "key", Key: &verify.Key{PEM: signer.PublicPEM()}, Log: verify.Log{Ignore: true},
		})
		rejection, refused := errors.AsType[*verify.Rejection](err)
		if refused {
			fmt.Println("refused:", rejection.Code)
			continue
		}
		fmt.Println("proved:", err == nil)
	}
	// Output:
	// proved: true
	// refused: wrong-key
}
