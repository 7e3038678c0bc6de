package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestImageValidatingPolicy verifies by Kyverno's image policies, and by what leaves
// images out of policies.
func TestImageValidatingPolicy(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, unsigned, foreign := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2"), h.Build("foreign", "v1", "3")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	ok(t, h.SignLegacy(foreign, verifytest.Claim{Signer: h.stranger, NoLog: true}, nil))
	policy := func(kind, metadata, validations string) string {
		return h.file(t, kind+validations+".yaml", fmt.Sprintf(`apiVersion: policies.kyverno.io/v1
kind: %s
metadata: {%s}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  matchImageReferences: [{glob: "%s/**"}]
  attestors: [{name: ours, cosign: {key: {data: %q}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}}}]
  %s: [{expression: "images.containers.map(i, verifyImageSignatures(i, [attestors.ours])).all(n, n > 0)", message: not ours}]
`, kind, metadata, h.Registry.Host(), h.key.PublicPEM(), validations))
	}
	all := policy("ImageValidatingPolicy", "name: signed", "validations")
	ofShop := policy("NamespacedImageValidatingPolicy", "name: signed, namespace: shop", "validations")
	broken := policy("ImageValidatingPolicy", "name: signed", "validationz")
	exception := h.file(t, "exception.yaml", `apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: legacy, namespace: office}
spec: {policyRefs: [{name: signed, kind: ImageValidatingPolicy}]}
`)
	override := func(effect, digest string) string {
		return h.file(t, effect+digest[len(digest)-8:]+".yaml", fmt.Sprintf(`apiVersion: quaymaster.dev/v1alpha1
kind: ImageOverride
metadata: {name: bad-day}
spec: {effect: %s, reason: a bad day, expires: %q, match: {digests: ["%s"]}}
`, effect, time.Now().Add(time.Hour).UTC().Format(time.RFC3339), digest))
	}
	for _, c := range []struct {
		reason   string
		policies []string
		args     []string
		image    string
		code     int
		says     string
	}{
		{"signed", []string{all}, nil, signed.Name, command.ExitAllowed, "ImageValidatingPolicy/signed"},
		{"unsigned", []string{all}, nil, unsigned.Name, command.ExitDenied, "not ours"},
		{"signed by another key", []string{all}, nil, foreign.Name, command.ExitDenied, "not ours"},
		{"a policy of the namespace", []string{ofShop}, []string{"-n", "shop"}, unsigned.Name, command.ExitDenied, "not ours"},
		{"a policy of another namespace", []string{ofShop}, []string{"-n", "market"}, unsigned.Name, command.ExitAllowed, ""},
		{"an exception", []string{all, exception}, nil, unsigned.Name, command.ExitAllowed, "office/legacy"},
		{"an override allows", []string{all, override("Allow", unsigned.Manifest.Digest)}, nil, unsigned.Name, command.ExitAllowed, "a bad day"},
		{"an override of another image", []string{all, override("Allow", foreign.Manifest.Digest)}, nil, unsigned.Name, command.ExitDenied, "not ours"},
		{"an override denies", []string{all, override("Deny", signed.Manifest.Digest)}, nil, signed.Name, command.ExitDenied, "a bad day"},
		{"a field that is none", []string{broken}, nil, signed.Name, command.ExitUsage, "spec.validationz"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			args := append([]string{"verify", c.image}, c.args...)
			for _, p := range c.policies {
				args = append(args, "--policy", p)
			}
			code, out, errs := quaymaster(t, args...)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit %d, want %d with %q:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
}
