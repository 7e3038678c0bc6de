package attest_test

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
)

func ExampleParseEnvelope() {
	digest := image.MustParseDigest("sha256:" + strings.Repeat("ab", 32))
	payload := fmt.Sprintf(`{
		"_type": "https://in-toto.io/Statement/v1",
		"subject": [{"name": "registry.example/app", "digest": {"sha256": %q}}],
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": {}
	}`, digest.Hex())
	envelope, err := attest.ParseEnvelope(fmt.Appendf(nil,
		`{"payloadType": "application/vnd.in-toto+json", "payload": %q, "signatures": [{"sig": "c2ln"}]}`,
		base64.StdEncoding.EncodeToString([]byte(payload))))
	if err != nil {
		fmt.Println(err)
		return
	}
	statement, err := attest.ParseStatement(envelope.Payload)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(attest.PredicateName(statement.PredicateType), statement.Covers(digest))
	fmt.Println("believed: not yet;", len(envelope.Signatures), "signature to prove")
	// Output:
	// slsaprovenance1 true
	// believed: not yet; 1 signature to prove
}
