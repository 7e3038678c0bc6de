package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestAge: a minimum age holds at admission, by the settings of the gateway and by a policy of each language: an image
// is admitted by its first signature of three days ago, and refused with one of an hour ago.
func TestAge(t *testing.T) {
	s := unguarded(t, "age")
	s.vacate(t)
	const scan = "https://example.com/scan/v1"
	backdated := map[string]any{"created": "2020-01-01T00:00:00Z", "quaymaster": map[string]any{"signedAt": "2020-01-01T00:00:00Z", "ageSeconds": 99999999}}
	made := func(name string, signed time.Duration) gatetest.Image {
		image := s.env.Unsigned("age/"+name, "1.0")
		claim := verifytest.Claim{Signer: s.env.Signer, Time: time.Now().Add(-signed)}
		must(t, s.env.SignLegacy(image, claim, nil), s.env.AttestLegacy(image, claim, scan, backdated))
		return image
	}
	old, young := made("old", 73*time.Hour), made("young", time.Hour)
	c := gateway.Configuration{}
	c.Trust.TrustedRoot = write(t, t.TempDir(), "trusted_root.json", string(s.env.Sigstore.TrustedRoot()), 0o600)
	c.Requirements = []gateway.Requirement{{Images: []string{"*"}, Namespaces: []string{"age-required"}, MinimumAge: "72h"}}
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))

	key, host := s.env.Signer.PublicPEM(), s.env.Registry.Host()
	for _, p := range []struct{ language, code, text string }{
		{"CEL", "denied-by-condition", fmt.Sprintf(`
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: age}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]
  matchImageReferences: [{glob: "%s/age/*"}]
  attestors:
    - name: ours
      cosign: {key: {data: %q}}
  validations:
    - expression: images.containers.all(image, time.now() - firstSignedAt(image, [attestors.ours]) >= duration("72h"))
      message: the image is too young
`, host, key)},
		{"JMESPath", "condition-failed", fmt.Sprintf(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: age}
spec:
  rules:
    - name: age
      match: {any: [{resources: {kinds: [Pod], namespaces: [%s]}}]}
      verifyImages:
        - imageReferences: ["%s/age/*"]
          failureAction: Enforce
          attestations:
            - type: %s
              attestors: [{entries: [{keys: {publicKeys: %q}}]}]
              conditions: [{all: [{key: "{{ time_since('', quaymaster.signedAt, '') }}", operator: GreaterThanOrEquals, value: 72h}]}]
`, s.namespace, host, scan, key)},
		{"Rego", "denied-by-condition", fmt.Sprintf(`
apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: age}
spec:
  images: [{glob: "%s/age/*"}]
  authorities:
    - name: ours
      key: {data: %q}
      ctlog: {url: https://rekor.sigstore.dev}
  policy:
    type: rego
    data: |
      package sigstore
      isCompliant {
        first := input.quaymaster.authorityMatches.ours.signatures.first
        time.now_ns() - time.parse_rfc3339_ns(first.signedAt) >= 72 * 3600 * 1000000000
      }
`, host, key)},
		{"CUE", "condition-failed", fmt.Sprintf(`
apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: age}
spec:
  images: [{glob: "%s/age/*"}]
  authorities:
    - name: ours
      key: {data: %q}
      ctlog: {url: https://rekor.sigstore.dev}
      attestations:
        - name: scan
          predicateType: %s
          policy: {type: cue, data: "quaymaster: ageSeconds: >=259200"}
`, host, key, scan)},
	} {
		t.Run(p.language, func(t *testing.T) {
			s.put(t, p.text)
			s.awaitRefused(t, young.Name, "["+p.code+"]")
			s.awaitAdmitted(t, old.Name)
			s.expect(t, p.language, step{old, ""}, step{young, p.code})
		})
	}
	t.Run("settings", func(t *testing.T) {
		required := s.in(t, "age-required")
		required.put(t, keyed(required, required.namespace, true, string(key)))
		required.awaitAsked(t)
		required.expect(t, "settings", step{old, ""}, step{young, "too-young"})
	})
}
