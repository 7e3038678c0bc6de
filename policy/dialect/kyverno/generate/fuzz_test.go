package generate_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate"
)

// FuzzCompile: whatever stands in a rule, it compiles or is refused, and one that
// compiles never makes an object without a name, or outside of its Policy's namespace.
func FuzzCompile(f *testing.F) {
	f.Add(bindingRule, "")
	f.Add(certificateRule, "shop")
	f.Add(addressRule, "")
	f.Add(`{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, generate: {foreach: [{list: request.object.metadata.labels, apiVersion: v1, kind: A, name: "{{element}}", namespace: shop, data: {a: b}}]}}`, "shop")
	o := options(f, "")
	f.Fuzz(func(t *testing.T, text, namespace string) {
		o := o
		o.Namespace = namespace
		var w written
		if err := yaml.UnmarshalStrict([]byte(text), &w); err != nil {
			return
		}
		r := generate.Rule{Name: w.Name, Path: "spec.rules[0]", Match: w.Match, Exclude: w.Exclude, Context: w.Context, Preconditions: w.Preconditions}
		about := policy.Case{Subject: subject(t, benchPod, policy.User{Name: "alice", RolesKnown: true})}
		if a, err := generate.CompileTargets(o, generate.Settings{}, r, w.Mutate); err == nil {
			for _, s := range a.Existing(t.Context(), about).Selections {
				if namespace != "" && s.Namespace != namespace {
					t.Errorf("a Policy of %q selects in %q", namespace, s.Namespace)
				}
			}
		}
		g, err := generate.CompileGenerate(o, generate.Settings{}, r, w.Generate)
		if err != nil {
			return
		}
		for _, made := range g.Generate(t.Context(), about).Objects {
			metadata, _ := made.Object["metadata"].(map[string]any)
			if name, _ := metadata["name"].(string); name == "" {
				t.Errorf("an object has no name: %v", made.Object)
			}
			if namespace != "" && metadata["namespace"] != namespace {
				t.Errorf("a Policy of %q makes %v", namespace, made.Object)
			}
		}
	})
}
