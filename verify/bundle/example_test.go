package bundle_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// A keyless signature is proved against a private Sigstore's trusted root.
func Example() {
	digest := image.DigestOf([]byte("the image's manifest"))
	ref, _ := image.Parse("registry.example/app:v1")
	subject, _ := ref.Pin(image.Descriptor{Digest: digest})

	sigstore := verifytest.Must(verifytest.New(verifytest.Options{}))
	signer := verifytest.Must(sigstore.Keyless(verifytest.Identity{Email: "dev@example.org", Issuer: "https://login.example"}))
	payload := verifytest.Must(sigstore.Bundle(verifytest.Claim{
		Signer: signer, Statement: verifytest.CosignSignature(digest.String(), nil),
	}))

	store, _ := trust.New(trust.Options{TrustedRoot: sigstore.TrustedRoot()})
	verifier := bundle.New(store.Snapshot())
	for _, person := range []string{"dev@example.org", "eve@example.org"} {
		fact, err := verifier.Verify(context.Background(), subject,
			attest.Evidence{Format: attest.Bundle, Payload: payload},
			verify.Authority{Name: "release", Keyless: &verify.Keyless{Identities: []verify.Identity{{
				Issuer: verify.Exactly("https://login.example"), Subject: verify.Exactly(person),
			}}}})
		if err != nil {
			fmt.Println("refused:", err)
			continue
		}
		fmt.Println("proved:", fact.Role, "by", fact.Signer)
	}
	// Output:
	// proved: signature by dev@example.org (https://login.example)
	// refused: wrong-identity: expected eve@example.org (https://login.example), found dev@example.org (https://login.example)
}
