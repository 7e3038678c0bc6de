package constraint

import (
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
)

// TestMatchesNothing: a rule that matches nothing by its text is refused, and one that
// differs in that is not.
func TestMatchesNothing(t *testing.T) {
	type edit = func(*admission.NamedRuleWithOperations)
	scope := func(s admission.ScopeType) edit { return func(r *admission.NamedRuleWithOperations) { r.Scope = &s } }
	resources := func(names ...string) edit { return func(r *admission.NamedRuleWithOperations) { r.Resources = names } }
	groups := func(names ...string) edit { return func(r *admission.NamedRuleWithOperations) { r.APIGroups = names } }
	at := func(o ...admission.OperationType) edit {
		return func(r *admission.NamedRuleWithOperations) { r.Operations = o }
	}
	names := func(n ...string) edit { return func(r *admission.NamedRuleWithOperations) { r.ResourceNames = n } }
	made := func(edits []edit) admission.NamedRuleWithOperations {
		r := admission.NamedRuleWithOperations{RuleWithOperations: admission.RuleWithOperations{
			Operations: []admission.OperationType{admission.Create, admission.Update},
			Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}}
		for _, e := range edits {
			e(&r)
		}
		return r
	}
	for _, c := range []struct {
		reason          string
		rule, exclusion []edit // no exclusion: nil
		path            string // empty: it compiles
	}{
		{"an empty name", []edit{names("a", "")}, nil, "resourceRules[0].resourceNames[1]"},
		{"a name", []edit{names("a")}, nil, ""},
		{"pods of the cluster", []edit{scope(admission.ClusterScope)}, nil, "resourceRules[0].scope"},
		{"pods in namespaces", []edit{scope(admission.NamespacedScope)}, nil, ""},
		{"nodes in namespaces", []edit{resources("nodes"), scope(admission.NamespacedScope)}, nil, "resourceRules[0].scope"},
		{"Namespaces in namespaces", []edit{resources("namespaces"), scope(admission.NamespacedScope)}, nil, "resourceRules[0].scope"},
		{"nodes and pods in namespaces", []edit{resources("nodes", "pods"), scope(admission.NamespacedScope)}, nil, ""},
		{"everything of the cluster", []edit{resources("*"), scope(admission.ClusterScope)}, nil, ""},
		{"a custom resource of unknown scope", []edit{groups("example.org"), resources("fleets"), scope(admission.ClusterScope)}, nil, ""},
		{"pods at CONNECT", []edit{at(admission.Connect)}, nil, "resourceRules[0].operations"},
		{"pods at CONNECT and CREATE", []edit{at(admission.Connect, admission.Create)}, nil, ""},
		{"pods/exec at CONNECT", []edit{resources("pods/exec"), at(admission.Connect)}, nil, ""},
		{"pods/exec at CREATE", []edit{resources("pods/exec"), at(admission.Create)}, nil, "resourceRules[0].operations"},
		{"pods/exec at *", []edit{resources("pods/exec"), at("*")}, nil, ""},
		{"logs, which are only read", []edit{resources("pods/log"), at("*")}, nil, "resourceRules[0].resources[0]"},
		{"a subresource that the resource does not have", []edit{resources("configmaps/status")}, nil, "resourceRules[0].resources[0]"},
		{"a subresource that it has", []edit{resources("services/status")}, nil, ""},
		{"evictions at DELETE", []edit{resources("pods/eviction"), at(admission.Delete)}, nil, "resourceRules[0].operations"},
		{"evictions at CREATE", []edit{resources("pods/eviction"), at(admission.Create)}, nil, ""},
		{"a scale at CREATE", []edit{groups("apps"), resources("deployments/scale"), at(admission.Create)}, nil, "resourceRules[0].operations"},
		{"a scale at UPDATE", []edit{groups("apps"), resources("deployments/scale"), at(admission.Update)}, nil, ""},
		{"any subresource at CONNECT", []edit{resources("pods/*"), at(admission.Connect)}, nil, ""},
		{"an exclusion that matches nothing", []edit{}, []edit{scope(admission.ClusterScope)}, "excludeResourceRules[0].scope"},
	} {
		doc := &admission.MatchResources{ResourceRules: []admission.NamedRuleWithOperations{made(c.rule)}}
		if c.exclusion != nil {
			doc.ExcludeResourceRules = []admission.NamedRuleWithOperations{made(c.exclusion)}
		}
		_, err := Compile(doc, "m", nil)
		if c.path == "" && err != nil || c.path != "" && (err == nil || !strings.HasPrefix(err.Error(), "m."+c.path+": ")) {
			t.Errorf("%s: %v, want an error of %q", c.reason, err, c.path)
		}
	}
}
