package constraint_test

import (
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
)

// TestNative: the API server's matching, where it differs from that of policies for webhooks.
func TestNative(t *testing.T) {
	const pods = "resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]\n"
	const namespaces = "resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [namespaces]}]\n"
	added := func(s *policy.Subject) { s.Subresource = "ephemeralcontainers" }
	namespace := func(now, before any, operation string) func(*policy.Subject) {
		return func(s *policy.Subject) {
			s.Kind, s.Namespace, s.NamespaceKnown, s.Operation = "Namespace", "", false, operation
			s.Object, s.OldObject = policy.Content{}, policy.Content{}
			if now != nil {
				s.Object = content("Namespace", now)
			}
			if before != nil {
				s.OldObject = content("Namespace", before)
			}
		}
	}
	keep, off := map[string]any{"keep": "yes"}, map[string]any{"env": "prod"}
	for _, c := range []struct {
		reason, text string
		change       func(*policy.Subject)
		want         string
	}{
		{"everything", "", added, "yes"},
		{"a rule for pods", pods, func(*policy.Subject) {}, "yes"},
		{"not for containers that are added", pods, added, "no"},
		{"a rule for these", strings.Replace(pods, "[pods]", "[pods/ephemeralcontainers]", 1), added, "yes"},
		{"no rules and an exclusion", strings.Replace(pods, "resourceRules", "excludeResourceRules", 1), func(*policy.Subject) {}, "no"},
		{"no rules and another exclusion", strings.Replace(pods, "resourceRules", "excludeResourceRules", 1), added, "yes"},
		{"no operations", strings.Replace(pods, "operations: ['*'], ", "", 1), func(*policy.Subject) {}, "yes"},
		{"a Namespace by its new labels", namespaces + "namespaceSelector: {matchLabels: {keep: 'yes'}}", namespace(keep, off, "UPDATE"), "yes"},
		{"a Namespace that loses the label", namespaces + "namespaceSelector: {matchLabels: {keep: 'yes'}}", namespace(off, keep, "UPDATE"), "no"},
		{"a Namespace by its name", namespaces + "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: web}}", namespace(off, nil, "CREATE"), "yes"},
		{"a Namespace that is deleted", namespaces + "namespaceSelector: {matchLabels: {keep: 'yes'}}", namespace(nil, keep, "DELETE"), "yes"},
		{"one without the label", namespaces + "namespaceSelector: {matchLabels: {keep: 'yes'}}", namespace(nil, off, "DELETE"), "no"},
		{"one of which nothing is known", namespaces + "namespaceSelector: {matchLabels: {keep: 'yes'}}", namespace(nil, nil, "DELETE"), "unknown"},
		{"the old labels of an object", pods + "objectSelector: {matchLabels: {keep: 'yes'}}", func(s *policy.Subject) { s.OldObject = content("Pod", keep) }, "yes"},
		{"neither object has the labels", pods + "objectSelector: {matchLabels: {keep: 'yes'}}", func(*policy.Subject) {}, "no"},
		{"a label that is no text", pods + "objectSelector: {matchLabels: {keep: 'yes'}}", func(s *policy.Subject) { s.Object = content("Pod", map[string]any{"keep": true}) }, "unknown"},
		{"labels of the namespace", pods + "namespaceSelector: {matchLabels: {team: a}}", func(*policy.Subject) {}, "yes"},
		{"other labels of the namespace", pods + "namespaceSelector: {matchLabels: {team: b}}", func(*policy.Subject) {}, "no"},
		{"labels that are not known", pods + "namespaceSelector: {matchLabels: {team: b}}", func(s *policy.Subject) { s.NamespaceKnown = false }, "unknown"},
	} {
		var doc *admission.MatchResources
		if err := yaml.Unmarshal([]byte(c.text), &doc); err != nil {
			t.Fatal(err)
		}
		compiled, _, err := constraint.CompileNative(doc, "spec.matchConstraints", nil)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		matched, err := compiled.Matches(request("", "Pod", c.change))
		got := map[bool]string{true: "yes", false: "no"}[matched]
		if err != nil {
			got = "unknown"
		}
		if got != c.want {
			t.Errorf("%s: %s %v, want %s", c.reason, got, err, c.want)
		}
	}
}

// TestNativeRefused: the API server refuses these, too.
func TestNativeRefused(t *testing.T) {
	const rule = "{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}"
	for _, c := range []struct{ reason, text, want string }{
		{"an unknown operation", strings.Replace(rule, "CREATE", "READ", 1), "resourceRules[0].operations[0]"},
		{"no groups", strings.Replace(rule, "apiGroups: [''], ", "", 1), "resourceRules[0].apiGroups"},
		{"an unknown scope", strings.Replace(rule, "}", ", scope: Pod}", 1), "resourceRules[0].scope"},
		{"an unknown match policy", rule + "]\nmatchPolicy: Same\nexcludeResourceRules: [", "matchPolicy"},
		{"a selector without values", rule + "]\nobjectSelector: {matchExpressions: [{key: a, operator: In}]}\nexcludeResourceRules: [", "objectSelector"},
	} {
		var doc admission.MatchResources
		if err := yaml.Unmarshal([]byte("resourceRules: ["+c.text+"]"), &doc); err != nil {
			t.Fatal(err)
		}
		if _, _, err := constraint.CompileNative(&doc, "spec", nil); err == nil || !strings.Contains(err.Error(), "spec."+c.want) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}
