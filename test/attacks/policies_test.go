package attacks

import (
	"fmt"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// The identity that signs releases, and the types of attestations.
const (
	issuer   = "https://token.example"
	releaser = "https://git.example/org/app/release.yaml@refs/heads/main"
	scanType = "https://example.com/scan/v1"
	sbomType = "https://example.com/sbom/v1"
)

// Attestors of policies.
const (
	ofKey    = "{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}"
	ofSecond = "{keys: {publicKeys: SECOND, rekor: {ignoreTlog: true}}}"
	ofLogged = "{keys: {publicKeys: KEY}}"
	ofNotary = "{certificates: {cert: NOTARY}}"
	ofPeople = "{keyless: {issuer: ISSUER, subject: SUBJECT}}"
)

// images is a ClusterPolicy with entries of verifyImages.
func images(entries ...string) string {
	text := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: images}\nspec:\n  validationFailureAction: Enforce\n" +
		"  rules:\n  - name: images\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    verifyImages:\n"
	for _, entry := range entries {
		text += "    - {imageReferences: ['HOST/shop/*'], " + entry + "}\n"
	}
	return text
}

// signedBy wants signatures of all attestors, each of its own.
func signedBy(attestors ...string) string {
	text := ""
	for _, attestor := range attestors {
		text += fmt.Sprintf("{entries: [%s]}, ", attestor)
	}
	return images("attestors: [" + text + "]")
}

// notarized wants notation's signatures.
func notarized() string { return images("type: Notary, attestors: [{entries: [" + ofNotary + "]}]") }

// scanned wants a statement by the attestors that the scan was clean.
func scanned(attestor string) string {
	return images("attestations: [{type: SCAN, attestors: [{entries: [" + attestor + "]}], conditions: [{all: [{key: '{{ verdict }}', operator: Equals, value: clean}]}]}]")
}

// clean is the result of a scan.
func clean() object { return object{"verdict": "clean"} }

// identity is the releaser's, with a change.
func identity(change func(*verifytest.Identity)) verifytest.Identity {
	id := verifytest.Identity{URI: releaser, Issuer: issuer}
	if change != nil {
		change(&id)
	}
	return id
}

// person is a signer of the sigstore's with a change to the releaser's identity.
func (s *scene) person(change func(*verifytest.Identity)) *verifytest.Signer {
	s.t.Helper()
	return testkit.Must(s.sigstore.Keyless(identity(change)))(s.t)
}
