package gate_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// twice is a rule that makes two references of one text.
type twice struct{ extracting }

func (twice) Extractors(*policy.Subject) []policy.Extractor {
	const path = "/metadata/annotations/image"
	return []policy.Extractor{{Name: "plain", Path: path}, {Name: "made", Path: path, Transform: func(text string) (string, error) {
		return strings.Replace(text, "/app:", "/made:", 1), nil
	}}}
}

// TestOverrideOfTwoImagesAtOnePlace: an Allow of one of the images that rules make of a text allows no other.
func TestOverrideOfTwoImagesAtOnePlace(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, made := h.Build("app", "v1", "app"), h.Build("made", "v1", "made")
	signed := h.Build("app", "signed", "signed")
	must(0, h.SignBundle(signed, byKey(h.key), nil))(t)
	must(0, h.SignBundle(h.Build("made", "signed", "made and signed"), byKey(h.key), nil))(t)
	at := h.Registry.Host() + "/"
	for _, c := range []struct {
		reason, image string
		overrides     []string
		want          gate.Result
	}{
		{"both are signed", signed.Name, []string{an("a", "Allow", repositories("docker.io/x/y"))}, gate.Allow},
		{"neither is allowed", app.Name, []string{an("a", "Allow", repositories("docker.io/x/y"))}, gate.Deny},
		{"the first is allowed", app.Name, []string{an("a", "Allow", repositories(at+"app"))}, gate.Deny},
		{"the second is allowed", app.Name, []string{an("a", "Allow", repositories(at+"made"))}, gate.Deny},
		{"both are allowed", app.Name, []string{an("a", "Allow", repositories(at+"app", at+"made"))}, gate.Allow},
		{"both are allowed, by two overrides", app.Name, []string{an("a", "Allow", repositories(at+"app")), an("b", "Allow", repositories(at+"made"))}, gate.Allow},
		{"the only one is allowed by digest", app.ByDigest(), []string{an("a", "Allow", digests(app))}, gate.Allow},
		{"the second is denied", signed.Name, []string{an("a", "Deny", repositories(at+"made"))}, gate.Deny},
		{"the digest of the second is denied", app.Name, []string{an("a", "Allow", repositories(at+"app", at+"made")), an("b", "Deny", digests(made))}, gate.Deny},
	} {
		g := h.overridden(t, []policy.Rule{twice{extracting{digestRule(signedBy(h.key), false, false), "default"}}}, c.overrides)
		if out := g.Decide(t.Context(), gate.Request{Object: checkEvaluation(t, c.image, "")}); out.Result != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.reason, out.Result, c.want, out.Verdicts)
		}
	}
}
