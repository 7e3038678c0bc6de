package verifytest_test

import (
	"encoding/json"
	"fmt"

	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// A workflow signs an image as cosign 3 does; a second signer shows what has to
// be refused.
func Example() {
	sigstore := verifytest.Must(verifytest.New(verifytest.Options{}))
	workflow := verifytest.Must(sigstore.Keyless(verifytest.Identity{
		URI:        "https://github.com/example/app/.github/workflows/release.yml@refs/tags/v1",
		Issuer:     "https://token.actions.githubusercontent.com",
		Extensions: map[verifytest.Extension]string{verifytest.SourceRepositoryURI: "https://github.com/example/app"},
	}))
	const digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

	good := verifytest.Must(sigstore.Bundle(verifytest.Claim{
		Signer:    workflow,
		Statement: verifytest.CosignSignature(digest, nil),
	}))
	bad := verifytest.Must(sigstore.Bundle(verifytest.Claim{
		Signer:    workflow,
		Statement: verifytest.CosignSignature(digest, nil),
		Records:   []verifytest.Record{{Fault: verifytest.WrongPromise}},
	}))

	// Verify them with sigstore.TrustedRoot(), or with the parts of it:
	// sigstore.CA.RootPEM(), sigstore.Rekor.PublicPEM(), and so on.
	for _, data := range [][]byte{good, bad} {
		var bundle struct{ MediaType string }
		fmt.Println(json.Unmarshal(data, &bundle), bundle.MediaType)
	}
	// Output:
	// <nil> application/vnd.dev.sigstore.bundle.v0.3+json
	// <nil> application/vnd.dev.sigstore.bundle.v0.3+json
}
