package kyverno_test

import (
	"strings"
	"testing"
)

// TestUnscanned: the policies that a scan of existing objects leaves out, by their text.
func TestUnscanned(t *testing.T) {
	const pods = "match: {any: [{resources: {kinds: [Pod]}}]}"
	const passes = "validate: {pattern: {metadata: {name: '?*'}}}"
	rule := func(parts ...string) string { return "\n  rules: [{name: r, " + strings.Join(parts, ", ") + "}]" }
	for _, row := range []struct {
		spec, want, reason string
	}{
		{rule(pods, passes), "", "no reason to leave it out"},
		{"\n  background: true" + rule(pods, passes), "", "its author wants it"},
		{"\n  background: false" + rule(pods, passes), "spec.background", "its author does not"},
		{rule("match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: a}]}]}", passes), "rule r", "it matches users"},
		{rule(pods, "exclude: {any: [{clusterRoles: [admin]}]}", passes), "rule r", "it excludes users with a role"},
		{rule(pods, "validate: {deny: {conditions: {any: [{key: '{{request.userInfo.username}}', operator: Equals, value: a}]}}}"), "rule r", "it reads the user"},
		{rule(pods, "validate: {deny: {conditions: {any: [{key: '{{ serviceAccountName }}', operator: Equals, value: a}]}}}"), "rule r", "it reads the service account that asks"},
		{rule(pods, "validate: {deny: {conditions: {any: [{key: '{{ serviceAccountNamespace }}', operator: Equals, value: a}]}}}"), "rule r", "it reads that account's namespace"},
		{rule(pods, "context: [{name: u, variable: {jmesPath: request.userInfo.username}}]", passes), "rule r", "a variable is the user"},
		{rule(pods, "validate: {pattern: {metadata: {labels: {'{{request.userInfo.username}}': '?*'}}}}"), "rule r", "the name of a member is the user"},
		{rule(pods, "exclude: {any: [{resources: {namespaces: [a]}}]}", passes), "", "it leaves out a namespace"},
		{rule(pods, "validate: {deny: {conditions: {any: [{key: '{{ to_string(request) }}', operator: Equals, value: a}]}}}"), "rule r", "the whole request has the user in it"},
		{rule(pods, "validate: {pattern: {spec: {serviceAccountName: '!default'}}}"), "", "a pod's field of that name is the object's"},
		{rule(pods, "validate: {message: '{{request.object.spec.serviceAccountName}}', pattern: {metadata: {name: '?*'}}}"), "", "so is this"},
		{rule(pods, "validate: {message: this request is refused, pattern: {metadata: {name: '?*'}}}"), "", "words read nothing"},
		{rule(pods, "validate: {deny: {conditions: {any: [{key: '{{request.operation}}', operator: Equals, value: DELETE}]}}}"), "", "an operation is no property of the requester"},
	} {
		p, err := newCompiler(t, nil).Compile([]byte("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:"+row.spec), "test")
		if err != nil {
			t.Fatalf("%s: %v", row.reason, err)
		}
		if (p.Unscanned == "") != (row.want == "") || !strings.Contains(p.Unscanned, row.want) {
			t.Errorf("%s: %q, want %q", row.reason, p.Unscanned, row.want)
		}
	}
}

// TestNamesLikeTheRequest: what has another letter before or behind is another name.
func TestNamesLikeTheRequest(t *testing.T) {
	for _, letter := range []string{"", "_", "-", "0", "9", "a", "z", "A", "Z"} {
		for _, name := range []string{"request" + letter, letter + "request"} {
			text := "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: '{{ \"" + name + "\" }}', deny: {}}}]}}"
			p, err := newCompiler(t, nil).Compile([]byte(text), "test")
			if err != nil {
				t.Fatal(err)
			}
			if (p.Unscanned != "") != (letter == "") {
				t.Errorf("%s: %q", name, p.Unscanned)
			}
		}
	}
}

// TestOnlyScanned: a policy that is switched off at admission is marked.
func TestOnlyScanned(t *testing.T) {
	for setting, want := range map[string]bool{"admission: false, ": true, "admission: true, ": false, "": false} {
		text := "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {" + setting + "rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {deny: {}}}]}}"
		p, err := newCompiler(t, nil).Compile([]byte(text), "test")
		if err != nil || p.OnlyScanned != want {
			t.Errorf("%q: %t, %v", setting, p != nil && p.OnlyScanned, err)
		}
	}
}
