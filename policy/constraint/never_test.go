package constraint

import (
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	versions := func(v ...string) edit { return func(r *admission.NamedRuleWithOperations) { r.APIVersions = v } }
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
		{"a name in upper case", []edit{names("a", "Web")}, nil, "resourceRules[0].resourceNames[1]"},
		{"a name in upper case of a role", []edit{groups("rbac.authorization.k8s.io"), resources("roles"), names("Web", "system:a", "*")}, nil, ""},
		{"a name in upper case of pods and roles", []edit{groups("", "rbac.authorization.k8s.io"), resources("pods", "roles"), names("Web")}, nil, ""},
		{"a name in upper case of ConfigMaps", []edit{resources("configmaps", "secrets"), names("Web")}, nil, "resourceRules[0].resourceNames[0]"},
		{"a name in lower case of ConfigMaps", []edit{resources("configmaps", "secrets"), names("web")}, nil, ""},
		{"a pattern of names", []edit{names("web-*")}, nil, "resourceRules[0].resourceNames[0]"},
		{"a namespace in a name", []edit{groups("rbac.authorization.k8s.io"), resources("roles"), names("a/web")}, nil, "resourceRules[0].resourceNames[0]"},
		{"a name of a custom resource", []edit{groups("example.org"), resources("fleets"), names("Web")}, nil, ""},
		{"a pattern of excluded names", nil, []edit{names("web-*")}, "excludeResourceRules[0].resourceNames[0]"},
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
		{"a version in upper case", []edit{versions("V1")}, nil, "resourceRules[0].apiVersions[0]"},
		{"a version with its group", []edit{groups("apps"), resources("deployments"), versions("apps/v1")}, nil, "resourceRules[0].apiVersions[0]"},
		{"an empty version", []edit{versions("v1", "")}, nil, "resourceRules[0].apiVersions[1]"},
		{"a version of a custom resource", []edit{groups("example.org"), resources("fleets"), versions("stable")}, nil, ""},
		{"a group in upper case", []edit{groups("Example.org"), resources("fleets")}, nil, "resourceRules[0].apiGroups[0]"},
		{"everything excluded", []edit{}, []edit{at("*"), resources("*/*"), groups("*"), versions("*")}, "excludeResourceRules"},
		{"the same excluded", []edit{}, []edit{}, "excludeResourceRules"},
		{"one operation excluded", []edit{}, []edit{at(admission.Update)}, ""},
		{"any operation, of which four are excluded", []edit{at("*")}, []edit{at(admission.Create, admission.Update, admission.Delete, admission.Connect)}, "excludeResourceRules"},
		{"any operation, of which three are excluded", []edit{at("*")}, []edit{at(admission.Create, admission.Update, admission.Delete)}, ""},
		{"one resource excluded", []edit{resources("pods", "services")}, []edit{}, ""},
		{"subresources excluded with the resource", []edit{resources("pods", "pods/status")}, []edit{resources("pods/*")}, "excludeResourceRules"},
		{"subresources that are not excluded", []edit{resources("pods", "pods/status")}, []edit{}, ""},
		{"all objects excluded, and no subresource", []edit{resources("pods/status")}, []edit{resources("*")}, ""},
		{"one version excluded", []edit{versions("v1", "v1beta1")}, []edit{}, ""},
		{"one group excluded", []edit{groups("", "apps")}, []edit{}, ""},
		{"a name excluded", []edit{}, []edit{names("a")}, ""},
		{"the names excluded", []edit{names("a")}, []edit{names("b", "a")}, "excludeResourceRules"},
		{"another name excluded", []edit{names("a")}, []edit{names("b")}, ""},
		{"another scope excluded", []edit{resources("*"), scope(admission.NamespacedScope)}, []edit{resources("*"), scope(admission.ClusterScope)}, ""},
		{"another version excluded", []edit{groups("apps"), resources("deployments")}, []edit{groups("apps"), resources("deployments"), versions("v1beta1")}, ""},
		{"a version that pods never had", []edit{versions("v2")}, nil, "resourceRules[0].apiVersions"},
		{"that version excluded", []edit{}, []edit{versions("v2")}, "excludeResourceRules[0].apiVersions"},
		{"a version that deployments never had", []edit{groups("apps"), resources("deployments"), versions("v2")}, nil, "resourceRules[0].apiVersions"},
		{"a version that deployments had", []edit{groups("apps"), resources("deployments"), versions("v1beta2")}, nil, ""},
		{"a version of one of the groups", []edit{groups("", "autoscaling"), resources("pods", "horizontalpodautoscalers"), versions("v2")}, nil, ""},
		{"a version of a custom resource", []edit{groups("example.org"), resources("fleets"), versions("v2")}, nil, ""},
		{"a custom resource at CONNECT", []edit{groups("example.org"), resources("fleets"), at(admission.Connect)}, nil, ""},
		{"the scope excluded", []edit{scope(admission.NamespacedScope)}, []edit{scope(admission.NamespacedScope)}, "excludeResourceRules"},
		{"any scope, of which one is excluded", []edit{resources("*")}, []edit{resources("*"), scope(admission.NamespacedScope)}, ""},
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

// TestSelectsNothing: a selector that no labels meet is refused, and one that differs in that
// is not.
func TestSelectsNothing(t *testing.T) {
	in := func(values ...string) meta.LabelSelectorRequirement {
		return meta.LabelSelectorRequirement{Key: "team", Operator: meta.LabelSelectorOpIn, Values: values}
	}
	for _, c := range []struct {
		reason   string
		selector meta.LabelSelector
		refused  bool
	}{
		{"another value", meta.LabelSelector{MatchLabels: map[string]string{"team": "a"}, MatchExpressions: []meta.LabelSelectorRequirement{in("b")}}, true},
		{"the same value", meta.LabelSelector{MatchLabels: map[string]string{"team": "a"}, MatchExpressions: []meta.LabelSelectorRequirement{in("b", "a")}}, false},
		{"there and absent", meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{{Key: "a", Operator: meta.LabelSelectorOpExists}, {Key: "a", Operator: meta.LabelSelectorOpDoesNotExist}}}, true},
		{"one there and another absent", meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{{Key: "a", Operator: meta.LabelSelectorOpExists}, {Key: "b", Operator: meta.LabelSelectorOpDoesNotExist}}}, false},
	} {
		for path, doc := range map[string]*admission.MatchResources{"m.objectSelector": {ObjectSelector: &c.selector}, "m.namespaceSelector": {NamespaceSelector: &c.selector}} {
			doc.ResourceRules = []admission.NamedRuleWithOperations{ruleFor("pods")}
			_, err := Compile(doc, "m", nil)
			if (err != nil) != c.refused || err != nil && !strings.HasPrefix(err.Error(), path+": no labels meet it: ") {
				t.Errorf("%s of %s: %v", c.reason, path, err)
			}
		}
	}
}

// TestInNamespace: a policy of a namespace that can match nothing in it is refused; one of the
// cluster is not.
func TestInNamespace(t *testing.T) {
	named := func(name string) *meta.LabelSelector {
		return &meta.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": name}}
	}
	cluster := admission.ClusterScope
	scoped := ruleFor("*")
	scoped.Scope = &cluster
	for _, c := range []struct {
		reason   string
		rules    []admission.NamedRuleWithOperations
		selector *meta.LabelSelector
		path     string // empty: it is accepted
	}{
		{"pods", []admission.NamedRuleWithOperations{ruleFor("pods")}, nil, ""},
		{"nodes", []admission.NamedRuleWithOperations{ruleFor("nodes")}, nil, "m.resourceRules: "},
		{"its own Namespace", []admission.NamedRuleWithOperations{ruleFor("namespaces")}, nil, "m.resourceRules: "},
		{"objects of the cluster", []admission.NamedRuleWithOperations{scoped}, nil, "m.resourceRules: "},
		{"nodes and pods", []admission.NamedRuleWithOperations{ruleFor("nodes", "pods")}, nil, ""},
		{"nodes, and pods in another rule", []admission.NamedRuleWithOperations{ruleFor("nodes"), ruleFor("pods")}, nil, ""},
		{"everything", []admission.NamedRuleWithOperations{ruleFor("*")}, nil, ""},
		{"its own namespace by name", []admission.NamedRuleWithOperations{ruleFor("pods")}, named("shop"), ""},
		{"another namespace by name", []admission.NamedRuleWithOperations{ruleFor("pods")}, named("bank"), "m.namespaceSelector: "},
		{"a namespace by another label", []admission.NamedRuleWithOperations{ruleFor("pods")}, &meta.LabelSelector{MatchLabels: map[string]string{"a": "bank"}}, ""},
	} {
		compiled, err := Compile(&admission.MatchResources{ResourceRules: c.rules, NamespaceSelector: c.selector}, "m", nil)
		if err != nil {
			t.Fatal(err)
		}
		err = compiled.InNamespace("shop", "m")
		if c.path == "" && err != nil || c.path != "" && (err == nil || !strings.HasPrefix(err.Error(), c.path)) {
			t.Errorf("%s: %v", c.reason, err)
		}
		if err := compiled.InNamespace("", "m"); err != nil {
			t.Errorf("%s, of a policy of the cluster: %v", c.reason, err)
		}
	}
}

func ruleFor(resources ...string) admission.NamedRuleWithOperations {
	return admission.NamedRuleWithOperations{RuleWithOperations: admission.RuleWithOperations{
		Operations: []admission.OperationType{admission.Create},
		Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources},
	}}
}
