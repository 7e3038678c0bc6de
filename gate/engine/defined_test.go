package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/workload"
)

// TestDefinitionsNextToPolicies: custom resource definitions among the documents of policies make their
// kinds known, in whatever order; another document that is no policy is an error.
func TestDefinitionsNextToPolicies(t *testing.T) {
	t.Parallel()
	const (
		definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: oxen.example.com}\n" +
			"spec: {group: example.com, scope: Cluster, names: {kind: Ox, plural: oxen}}\n"
		policy = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec:\n" +
			"  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [oxen]}]}\n" +
			"  validations: [{expression: 'has(object.spec)'}]\n"
		other = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n"
	)
	for _, c := range []struct {
		reason, text, kind, err string
	}{
		{"before the policy", definition + "---\n" + policy, "Ox", ""},
		{"after it", policy + "---\n" + definition, "Ox", ""},
		{"of another group", policy + "---\n" + strings.ReplaceAll(definition, "example.com", "example.org"), "", ""},
		{"none", policy, "", ""},
		{"another document", policy + "---\n" + other, "", "Deployment"},
	} {
		objects, err := workload.Read(strings.NewReader(c.text), "policies.yaml")
		if err != nil {
			t.Fatal(err)
		}
		known := NewResources()
		loaded, err := CompileDocuments(objects, known, true, time.Now)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", c.reason, err)
			}
			continue
		}
		if err != nil || len(loaded.Policies) != 1 {
			t.Errorf("%s: %d policies, %v", c.reason, len(loaded.Policies), err)
			continue
		}
		kind := ""
		for _, target := range loaded.Policies[0].Validations[0].Targets() {
			if target.Kind == "Ox" {
				kind = target.Kind
			}
		}
		if kind != c.kind || (len(known.Named("example.com", "oxen")) == 1) != (c.kind != "") || len(known.Named("*", "cows")) != 0 {
			t.Errorf("%s: targets %+v, want the kind %q", c.reason, loaded.Policies[0].Validations[0].Targets(), c.kind)
		}
	}
}
