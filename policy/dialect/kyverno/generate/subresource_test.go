package generate_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/subresource"
)

const (
	boundPod  = "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, labels: {app: web}}, spec: {nodeName: one}, status: {phase: Running}}"
	scaledSet = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 3, selector: {matchLabels: {a: b}}}}"
)

// request is the subject of a request for a subresource; the empty one is the object itself.
func request(t *testing.T, text, name string) *policy.Subject {
	t.Helper()
	s := subject(t, text, policy.User{})
	s.Operation = "UPDATE"
	if name != "" {
		*s = subresource.Subject(s, name)
	}
	return s
}

// TestSubresources: rules apply to requests for the subresources that they name, and to no others.
func TestSubresources(t *testing.T) {
	const made = "apiVersion: v1, kind: ConfigMap, name: made, namespace: b, data: {data: {main: '{{request.operation}} {{request.kind.kind}} {{request.subResource || `\"none\"`}} {{request.object.kind}} {{request.namespace}}/{{request.name}}'}}"
	for _, c := range []struct{ reason, match, text, name, want string }{
		{"a binding", "{kinds: [Pod/binding]}", boundPod, "binding", "CREATE Binding binding Binding shop/web"},
		{"at its operation", "{kinds: [Pod/binding], operations: [CREATE]}", boundPod, "binding", "CREATE Binding binding Binding shop/web"},
		{"of its name", "{kinds: [v1/Pod/binding], names: [web]}", boundPod, "binding", "CREATE Binding binding Binding shop/web"},
		{"of another name", "{kinds: [Pod/binding], names: [other]}", boundPod, "binding", ""},
		{"the pod, not its binding", "{kinds: [Pod/binding]}", boundPod, "", ""},
		{"another subresource", "{kinds: [Pod/binding]}", boundPod, "status", ""},
		{"a status", "{kinds: [Pod/status]}", boundPod, "status", "UPDATE Pod status Pod shop/web"},
		{"a status by labels", "{kinds: [Pod/status], selector: {matchLabels: {app: web}}}", boundPod, "status", "UPDATE Pod status Pod shop/web"},
		{"a status by other labels", "{kinds: [Pod/status], selector: {matchLabels: {app: other}}}", boundPod, "status", ""},
		{"a scale", "{kinds: [Deployment/scale]}", scaledSet, "scale", "UPDATE Scale scale Scale shop/web"},
		{"another kind", "{kinds: [apps/v1/StatefulSet/scale]}", scaledSet, "scale", ""},
		{"added containers by name", "{kinds: [Pod/ephemeralcontainers]}", boundPod, "ephemeralcontainers", "UPDATE Pod ephemeralcontainers Pod shop/web"},
		{"added containers, and the pod", "{kinds: [Pod, Pod/ephemeralcontainers]}", boundPod, "ephemeralcontainers", "UPDATE Pod ephemeralcontainers Pod shop/web"},
		{"the pod, not added containers", "{kinds: [Pod/ephemeralcontainers]}", boundPod, "", ""},
		{"added containers of a rule for pods", "{kinds: [Pod]}", boundPod, "ephemeralcontainers", ""},
		{"the pod of a rule for both", "{kinds: [Pod, Pod/binding]}", boundPod, "", "UPDATE Pod none Pod shop/web"},
		{"a custom kind", "{kinds: [example.com/v1/Fleet/status]}", "{apiVersion: example.com/v1, kind: Fleet, metadata: {name: web, namespace: shop}}", "status", "UPDATE Fleet status Fleet shop/web"},
	} {
		match := "name: r\nmatch: {any: [{resources: " + c.match + "}]}\n"
		g, s := generation(t, "", match+"generate: {"+made+"}"), request(t, c.text, c.name)
		got := g.Generate(t.Context(), policy.Case{Subject: s})
		if g.Selects(s) != (c.want != "") || (got.Result == policy.Pass) != (c.want != "") || got.Result != policy.Pass && got.Result != "" {
			t.Errorf("%s: %q %v, selected %t", c.reason, got.Result, got.Reasons, g.Selects(s))
			continue
		}
		if c.want != "" && got.Objects[0].Object["data"].(map[string]any)["main"] != c.want {
			t.Errorf("%s: %v", c.reason, got.Objects[0].Object["data"])
		}
		a := alteration(t, "", match+"mutate: {targets: [{apiVersion: v1, kind: Pod, name: '{{request.object.metadata.name}}'}]"+patched)
		if selected := a.Existing(t.Context(), policy.Case{Subject: s}); (selected.Result == policy.Pass) != (c.want != "") || a.NeedsRequester() {
			t.Errorf("%s, targets: %+v", c.reason, selected)
		}
		for _, target := range a.Targets() {
			if is := target.Kind + "/" + target.Subresource; !strings.Contains(c.match, strings.TrimSuffix(is, "/")) {
				t.Errorf("%s: watches %s", c.reason, is)
			}
		}
	}
}

// TestSubresourcesThatAreRefused: those of which no watch shows the requests, and what a request does not record.
func TestSubresourcesThatAreRefused(t *testing.T) {
	const targets = "mutate: {targets: [{apiVersion: v1, kind: Pod}]" + patched
	of := func(kinds, rule string) string {
		return "name: r\nmatch: {any: [{resources: {kinds: [" + kinds + "]}}]}\n" + rule
	}
	for _, c := range []struct{ reason, rule, want string }{
		{"a connection", of("Pod/exec", targets), "the trigger Pod/exec (a request for it leaves nothing in the object that a watch would return)"},
		{"an eviction", of("Pod/eviction", targets), "the trigger Pod/eviction (a request for it leaves nothing"},
		{"a token", of("ServiceAccount/token", "generate: {"+madeObject+"}"), "the trigger ServiceAccount/token (a request for it leaves nothing"},
		{"with one that shows", of("Pod/binding, Pod/exec", targets), "the trigger Pod/exec (a request for it leaves nothing"},
		{"all of a kind", of("Pod/*", targets), "the trigger Pod/* (name the subresources"},
		{"one of every kind", of("'*/status'", targets), "triggers of many kinds (*)"},
		{"replicas of a custom kind", of("example.com/v1/Fleet/scale", targets), "the trigger Fleet/scale (the definition of the kind chooses the field"},
		{"the end of a namespace", of("Namespace/finalize", targets), "the trigger Namespace/finalize (it is requested for an object that is being deleted"},
		{"with synchronize", of("Pod/binding", "generate: {"+madeObject+", synchronize: true}"), "spec.rules[0].generate.synchronize: the trigger Pod/binding of a rule with synchronize: true"},
		{"by the requester", of("Pod/binding", strings.Replace(targets, "a: b", "a: '{{request.userInfo.username}}'", 1)),
			"spec.rules[0].match: the trigger Pod/binding of a rule about other objects that reads the requester, which a request for a subresource does not record"},
		{"by roles", strings.Replace(of("Pod/status", targets), "]}}]}", "]}, clusterRoles: [edit]}]}", 1), "reads the requester, which a request"},
	} {
		if err := compileRule(t, "", c.rule); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}
