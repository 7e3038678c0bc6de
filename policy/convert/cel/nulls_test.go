package cel_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/policytest"
)

// TestNullLists: a list that an API server writes as null, or that a manifest lacks, has the verdict of the source.
func TestNullLists(t *testing.T) {
	const head = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {validationFailureAction: Enforce, rules: [
  {name: r, match: {any: [{resources: {kinds: [ClusterRole]}}]}, validate: {message: not so, allowExistingViolations: false, `
	const of = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}"
	objects := []struct{ reason, text string }{
		{"no rules", of + "}"}, {"null", of + ", rules: null}"}, {"an empty list", of + ", rules: []}"},
		{"a harmless rule", of + ", rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}"},
		{"a forbidden rule", of + ", rules: [{apiGroups: [''], resources: [pods], verbs: [get]}, {apiGroups: [''], resources: ['*'], verbs: [escalate]}]}"},
		{"verbs that are null", of + ", rules: [{apiGroups: [''], resources: ['*'], verbs: null}]}"},
		{"no verbs", of + ", rules: [{apiGroups: [''], resources: ['*']}]}"},
	}
	for _, c := range []struct {
		reason, rest string
		admitted     int // of the objects
	}{
		{"a list of lists", "deny: {conditions: {any: [{key: '{{ request.object.rules[].resources[] }}', operator: AnyIn, value: ['*']}]}}}}]}}", 3},
		{"the value of a condition", "deny: {conditions: {any: [{key: escalate, operator: AnyIn, value: '{{ request.object.rules[].verbs[] }}'}]}}}}]}}", 6},
		{"elements", "foreach: [{list: 'request.object.rules[]', deny: {conditions: {all: [{key: '{{ element.verbs }}', operator: AnyIn, value: [escalate]}]}}}]}}]}}", 5},
		{"a default", "deny: {conditions: {any: [{key: '{{ length(request.object.rules || `[]`) }}', operator: GreaterThan, value: 1}]}}}}]}}", 6},
	} {
		result := convertText(t, head+c.rest, cel.Options{})
		if len(result.Problems) > 0 {
			t.Errorf("%s: %v", c.reason, result.Problems)
			continue
		}
		source, made, admitted := sourcePolicy(t, []byte(head+c.rest)), compiledResults(t, result.Policies), 0
		for _, o := range objects {
			s := creation(policytest.Object(t, o.text))
			same(t, c.reason+" of "+o.reason, s, source, made)
			if is, _ := admits(t, s, made...); is {
				admitted++
			}
		}
		if admitted != c.admitted {
			t.Errorf("%s: %d objects are admitted, want %d", c.reason, admitted, c.admitted)
		}
	}
	refused := convertText(t, head+"deny: {conditions: {any: [{key: '{{ request.object.rules[0].verbs }}', operator: AnyNotIn, value: [get]}]}}}}]}}", cel.Options{})
	if len(refused.Problems) != 1 {
		t.Errorf("a negated operator, which is indeterminate of null, converts: %v", refused.Problems)
	}
}
