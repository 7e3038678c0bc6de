package documents

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/gateway/rollout"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/set"
)

// TestHeldNamesNoImage: an image refused because no ClusterImagePolicy names it stays refused
// while one that names it is held.
func TestHeldNamesNoImage(t *testing.T) {
	compiler := sigstore.New(sigstore.Options{})
	named := func(name, images string) *policy.Policy {
		p, err := compiler.Compile([]byte("apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\nmetadata: {name: "+name+"}\nspec: {images: [{glob: '"+images+"'}], authorities: [{static: {action: pass}}]}\n"), name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b := named("a", "registry.example/a/**"), named("b", "registry.example/b/**")
	pod := &policy.Subject{
		Object:  policy.ContentOf(map[string]any{"metadata": map[string]any{"name": "p"}}),
		Version: "v1", Kind: "Pod", Namespace: "n", Name: "p", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true}, Operation: "CREATE",
	}
	images := func([]policy.Extractor) ([]policy.Image, error) {
		return []policy.Image{{Container: "c", Role: "container", Pointer: "/spec/containers/0/image", Ref: image.MustParse("registry.example/b/x:1")}}, nil
	}
	for _, c := range []struct {
		reason string
		active []*policy.Policy
		denied bool
	}{
		{"no policy names it", []*policy.Policy{a}, true},
		{"the policy that names it is held", []*policy.Policy{a, policy.Audited(b, rollout.ByRollout)}, true},
		{"the policy that names it is approved", []*policy.Policy{a, b}, false},
		{"the policy that names it is of a source that audits", []*policy.Policy{a, policy.Audited(b, rollout.BySetting)}, false},
		{"the only one is held", []*policy.Policy{policy.Audited(b, rollout.ByRollout)}, true},
	} {
		now := rollout.NewEffective(nil, slog.New(slog.DiscardHandler))
		rest := unmatched{choice: sigstore.UnmatchedDeny, compiler: compiler}
		made, err := now.Merged(rest.policies, true)(c.active)
		if err != nil {
			t.Fatal(err)
		}
		set, err := set.New(slices.Concat(c.active, made)...)
		if err != nil {
			t.Fatal(err)
		}
		denied := slices.ContainsFunc(set.Plan(t.Context(), pod, images).Checks, func(check policy.Check) bool {
			return check.DenyMessage != "" && check.Action == policy.Enforce
		})
		if denied != c.denied {
			t.Errorf("%s: denied %t, want %t", c.reason, denied, c.denied)
		}
	}
}
