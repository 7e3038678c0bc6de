package validating_test

import (
	"strings"
	"testing"
)

// TestReadsOfTheRequester omit a policy from scans: the requester of an existing object is
// unknown. The expressions decide, not the words of the document.
func TestReadsOfTheRequester(t *testing.T) {
	const why = "an expression reads request.userInfo or authorizer"
	for _, c := range []struct{ reason, text, want string }{
		{"a member of the request", head + asks("request.userInfo.username != 'eve'"), why},
		{"by a key", head + asks(`dyn(request)["userInfo"].username != "eve"`), why},
		{"by an escaped key", head + asks(`dyn(request)["user\x49nfo"].username != "eve"`), why},
		{"by a key that is computed", head + asks(`dyn(request)[object.metadata.name] == "eve"`), why},
		{"whether there is one", head + asks("has(request.userInfo)"), why},
		{"the request as a whole", head + asks("[request].size() == 1"), why},
		{"a variable", head + about("pods", "  variables: [{name: requester, expression: request.userInfo}]\n  validations: [{expression: variables.requester.username != 'eve'}]\n"), why},
		{"a condition", head + about("pods", "  matchConditions: [{name: a, expression: request.userInfo.username != 'eve'}]\n  validations: [{expression: 'true'}]\n"), why},
		{"a message", head + about("pods", "  validations: [{expression: 'true', messageExpression: request.userInfo.username}]\n"), why},
		{"background is off", head + asks("request.userInfo.username != 'eve'") + "  evaluation: {background: {enabled: false}}\n", "spec.evaluation.background.enabled is false"},
		{"another member", head + asks("request.name != 'eve'"), ""},
		{"the object as a whole", head + asks("[object].size() == 1"), ""},
		{"a member of the object", head + asks("object.metadata.name != 'userInfo'"), ""},
		{"a description", strings.Replace(head, "name: test", "name: test, annotations: {policies.kyverno.io/description: no userInfo and no authorizer}", 1) + asks("true"), ""},
		{"a message without an expression", head + about("pods", "  validations: [{expression: 'true', message: not by request.userInfo}]\n"), ""},
	} {
		got := compile(t, c.text).Unscanned
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestOnlyScanned: a policy that is switched off at admission is marked.
func TestOnlyScanned(t *testing.T) {
	for setting, want := range map[string]bool{"  evaluation: {admission: {enabled: false}}\n": true, "  evaluation: {admission: {enabled: true}}\n": false, "": false} {
		if got := compile(t, head+asks("true")+setting).OnlyScanned; got != want {
			t.Errorf("%q: %t, want %t", setting, got, want)
		}
	}
}
