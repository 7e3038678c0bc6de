package kyverno_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/kyverno"
)

// TestIndeterminateExclude: an exclusion that depends on what is not known takes no rule
// away: a pass stays a pass, and a failure is indeterminate and names what is missing.
func TestIndeterminateExclude(t *testing.T) {
	const deny = "validate: {message: denied, deny: {conditions: {all: [{key: '{{ request.object.bad }}', operator: Equals, value: true}]}}}}"
	object := func(s *policy.Subject, kind string, bad bool) *policy.Subject {
		s.Object = policy.ContentOf(map[string]any{"kind": kind, "bad": bad, "metadata": map[string]any{"labels": map[string]any{"free": "yes"}}})
		return s
	}
	for _, c := range []struct {
		reason, selection string
		subject           func() *policy.Subject
		kind, names       string
	}{
		{"labels of an Eviction", "match: {any: [{resources: {kinds: [Pod/eviction]}}]}, exclude: {any: [{resources: {selector: {matchLabels: {free: 'yes'}}}}]}", func() *policy.Subject {
			return &policy.Subject{Version: "v1", Kind: "Pod", Subresource: "eviction", Namespace: "prod", NamespaceKnown: true, Name: "a", Operation: "CREATE"}
		}, "Eviction", "its subresource eviction brings another object"},
		{"labels of the namespace", "match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{resources: {namespaceSelector: {matchLabels: {free: 'yes'}}}}]}", func() *policy.Subject {
			return &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "prod", Name: "a", Operation: "CREATE"}
		}, "Pod", "labels of the object's namespace"},
		{"a match by labels of the namespace", "match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {free: 'yes'}}}}]}", func() *policy.Subject {
			return &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "prod", Name: "a", Operation: "CREATE"}
		}, "Pod", "labels of the object's namespace"},
		{"roles", "match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{clusterRoles: [cluster-admin]}]}", func() *policy.Subject {
			return &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "prod", NamespaceKnown: true, Name: "a", Operation: "CREATE", User: policy.User{Name: "eve"}}
		}, "Pod", "the user's roles"},
	} {
		p := about(t, nil, "{name: r, "+c.selection+", "+deny, "")
		if got := results(t, p, object(c.subject(), c.kind, false)); got != "r=pass" {
			t.Errorf("%s: of an object that the rule admits: %s", c.reason, got)
		}
		validated := p.Validations[0].Validate(t.Context(), policy.Case{Subject: object(c.subject(), c.kind, true)})
		if validated.Result != policy.Undecided || !strings.Contains(validated.Reasons[0].Message, c.names) || validated.Reasons[0].Code != policy.PolicyError {
			t.Errorf("%s: of an object that it refuses: %s %v", c.reason, validated.Result, validated.Reasons)
		}
	}
}

// TestOfTheCluster: an exclusion and an exception by labels of namespaces cover no object
// that is in none.
func TestOfTheCluster(t *testing.T) {
	binding := &policy.Subject{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding", Name: "mine", Operation: "CREATE", Object: policy.ContentOf(map[string]any{"kind": "ClusterRoleBinding"})}
	const bindings = "match: {any: [{resources: {kinds: [ClusterRoleBinding, RoleBinding]}}]}"
	for _, selector := range []string{"{matchLabels: {env: sandbox}}", "{matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}", "{}"} {
		p := about(t, nil, "{name: r, "+bindings+", exclude: {any: [{resources: {namespaceSelector: "+selector+"}}]}, validate: {message: denied, deny: {}}}", "")
		if got := results(t, p, binding); got != "r=fail" {
			t.Errorf("excluded by %s: %s", selector, got)
		}
		e, err := newCompiler(t, nil).CompileException([]byte("{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e, namespace: a}, spec: {exceptions: [{policyName: p, ruleNames: [r]}], "+
			"match: {any: [{resources: {namespaceSelector: "+selector+"}}]}}}"), "test")
		if err != nil {
			t.Fatal(err)
		}
		if covers, err := e.Scope.Covers(t.Context(), binding); covers || err != nil {
			t.Errorf("excepted by %s: %t, %v", selector, covers, err)
		}
		role := *binding
		role.Kind, role.Namespace, role.NamespaceKnown, role.NamespaceLabels = "RoleBinding", "a", true, map[string]string{"env": "sandbox"}
		if got := results(t, p, &role); got != "" {
			t.Errorf("of a namespace that is excluded by %s: %s", selector, got)
		}
	}
}

// TestBrokenSelection: a policy that is broken by a user which no request has holds the
// kinds that it names, and no others.
func TestBrokenSelection(t *testing.T) {
	const text = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [KINDS]}, subjects: [{kind: ServiceAccount, name: ci}]}]}, validate: {deny: {}}}]}}"
	for kinds, want := range map[string]string{"ConfigMap": "ConfigMap", "pods": "Pod"} {
		document := []byte(strings.Replace(text, "KINDS", kinds, 1))
		_, err := newCompiler(t, nil).Compile(document, "test")
		if err == nil || !strings.Contains(err.Error(), "spec.rules[0].match.any[0].subjects[0].namespace: is empty") {
			t.Fatalf("%s: %v", kinds, err)
		}
		broken := kyverno.Broken(document, "test", err)
		for _, kind := range []string{"ConfigMap", "Pod", "Secret"} {
			s := &policy.Subject{Version: "v1", Kind: kind, Namespace: "a", Operation: "CREATE", Object: policy.ContentOf(map[string]any{"kind": kind})}
			if got := results(t, broken, s) == "r=undecided"; got != (kind == want) {
				t.Errorf("a broken rule about %s holds %s: %t", kinds, kind, got)
			}
		}
	}
}
