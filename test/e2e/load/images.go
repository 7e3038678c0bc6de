package main

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// images are in use; one in oneIn of them is new in each round; one in keylessIn is signed by
// a workflow, with an attestation, and the others with a key. drained are those of the pods
// that are drained.
const images, oneIn, keylessIn, drained = 500, 20, 3, 60

// The keyless identity, and the type of attestations.
const (
	workflow  = "https://github.com/shop/shop/.github/workflows/release.yaml@refs/heads/main"
	issuer    = "https://token.actions.githubusercontent.com"
	predicate = "https://slsa.dev/provenance/v1"
	buildType = "https://ci.example/release"
)

// policy requires images in keyless/ to be signed by the workflow, with its attestation.
const policy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: load-keyless}
spec:
  webhookTimeoutSeconds: 10
  rules:
  - name: released
    match: {any: [{resources: {kinds: [Pod], namespaces: [%[1]s]}}]}
    verifyImages:
    - imageReferences: ["%[2]s/keyless/*"]
      failureAction: Enforce
      attestors: &ours
      - entries:
        - keyless: {subject: %[3]q, issuer: %[4]q}
      attestations:
      - type: %[5]s
        attestors: *ours
        conditions:
        - all:
          - {key: "{{ buildDefinition.buildType }}", operator: Equals, value: %[6]q}
`

// policies of the gateway, for namespaces.
func (s *stand) policies(namespaces ...string) (string, error) {
	host := s.env.Registry.Host()
	byKey, err := s.env.YAML(env.Policy{
		Name: "load-key", Namespaces: namespaces, Images: []string{host + "/key/*", host + "/bare/*"},
	})
	if err != nil {
		return "", err
	}
	return byKey + "---\n" + fmt.Sprintf(policy, strings.Join(namespaces, ", "), host, workflow, issuer, predicate, buildType), nil
}

// yard makes images.
type yard struct {
	*env.Env
	workflow *verifytest.Signer
}

func openYard(h *env.Env) (*yard, error) {
	signer, err := h.Sigstore.Keyless(verifytest.Identity{URI: workflow, Issuer: issuer})
	return &yard{h, signer}, err
}

// signed makes count images and returns their names, by tag or by digest.
func (y *yard) signed(name string, count int, byDigest bool) ([]string, error) {
	names := make([]string, count)
	for i := range names {
		image, err := y.image(fmt.Sprintf("%s-%d", name, i), i%keylessIn == 0)
		if err != nil {
			return nil, err
		}
		names[i] = image.Name
		if byDigest {
			names[i] = image.ByDigest()
		}
	}
	return names, nil
}

func (y *yard) image(name string, keyless bool) (gatetest.Image, error) {
	if !keyless {
		return y.Signed("key/"+name, "1.0")
	}
	image := y.Unsigned("keyless/"+name, "1.0")
	claim := verifytest.Claim{Signer: y.workflow}
	if err := y.SignLegacy(image, claim, nil); err != nil {
		return image, err
	}
	return image, y.AttestLegacy(image, claim, predicate, map[string]any{"buildDefinition": map[string]any{"buildType": buildType}})
}
