package imagevalidating_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// TestSamples evaluates local copies of other projects' image policies on images that the
// tests sign, with the certificate and the registry replaced: each policy accepts and
// refuses.
func TestSamples(t *testing.T) {
	root := os.Getenv("QUAYMASTER_SAMPLES")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "samples")
	}
	var files []string
	for _, pattern := range []string{"verify-images/*ivpol*.yaml", "verify-images/conformance/*ivpol*.yaml"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Skip("the samples are not at hand (set QUAYMASTER_SAMPLES)")
	}
	h := newEnv(t)
	good, bad := h.signed(t, "good"), h.signed(t, "bad")
	h.notarize(t, good, h.notary)
	h.document(t, good, h.notary, "sbom/cyclone-dx", `{"bomFormat":"CycloneDX"}`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) { h.sample(t, string(text), good.Name, bad.Name) })
	}
}

func (h *env) sample(t *testing.T, text, good, bad string) {
	certificate := regexp.MustCompile(`(?s)\|-\s*-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----`)
	text = certificate.ReplaceAllString(text, "'NOTARY'")
	text = regexp.MustCompile(`ghcr\.io/[a-z/*-]*`).ReplaceAllString(text, "HOST/**")
	p := h.policy(t, text)
	if len(p.Rules) == 0 {
		t.Fatal("no rule")
	}
	labels := map[string]string{"prod": "true", "env": "prod"}
	kinds := []string{"Pod"}
	if slices.ContainsFunc(p.Targets, func(target policy.Target) bool { return target.Kind == "Deployment" }) || len(p.Targets) == 0 {
		kinds = append(kinds, "Deployment")
	}
	asked := 0
	for _, kind := range kinds {
		accepted := h.decide(t, object{kind: kind, images: []string{good}, labels: labels, own: labels}.request(t), text)
		refused := h.decide(t, object{kind: kind, images: []string{bad}, labels: labels, own: labels}.request(t), text)
		if !concerns(refused) { // of another kind
			expect(t, accepted, "signed "+kind, gate.Unchecked, "")
			continue
		}
		expect(t, accepted, "signed "+kind, gate.Allow, "")
		asked++
		switch {
		case strings.Contains(text, "attestors: []"): // no signature is required
			missing := h.decide(t, object{kind: kind, images: []string{bad + "-missing"}, labels: labels, own: labels}.request(t), text)
			expect(t, missing, "missing "+kind, gate.Error, "not-found")
		case p.AuditOnly:
			expect(t, refused, "unsigned "+kind, gate.Allow, "unsigned")
		default:
			expect(t, refused, "unsigned "+kind, gate.Deny, "unsigned")
		}
	}
	if asked == 0 {
		t.Error("the policy was never asked")
	}
}

func concerns(out gate.Outcome) bool {
	return slices.ContainsFunc(out.Verdicts, func(v gate.Verdict) bool { return len(v.Decisions) > 0 })
}

// TestSampleOfOurOwn is TestSamples for a policy of the same form.
func TestSampleOfOurOwn(t *testing.T) {
	h := newEnv(t)
	good, bad := h.signed(t, "good"), h.signed(t, "bad")
	h.notarize(t, good, h.notary)
	h.document(t, good, h.notary, "sbom/cyclone-dx", `{"bomFormat":"CycloneDX"}`)
	h.sample(t, edit(with("images.containers.map(i, verifyImageSignatures(i, [attestors.notary])).all(e, e > 0)"),
		"spec:\n", "spec:\n  matchConditions: [{name: prod, expression: \"object.metadata.?labels.prod.orValue('') == 'true'\"}]\n")+`  - expression: images.containers.map(i, verifyAttestationSignatures(i, attestations.sbom, [attestors.notary])).all(e, e > 0)
  - expression: images.containers.map(i, extractPayload(i, attestations.sbom).bomFormat == 'CycloneDX').all(e, e)
`, good.Name, bad.Name)
}
