package mutating_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// TestDeletedTriggers: the deletion of an object changes others if the policy names the operation.
// Expressions read the deleted object as the old one of the request.
func TestDeletedTriggers(t *testing.T) {
	of := func(operations, constraints string) string {
		return strings.NewReplacer("CREATE, UPDATE", operations, "request.name", "request.oldObject.metadata.name + request.operation").Replace(existing(constraints))
	}
	for _, c := range []struct {
		reason, text string
		want         bool
	}{
		{"deletions", of("DELETE", targets), true},
		{"creations and deletions", of("CREATE, DELETE", targets), true},
		{"every operation", of("'*'", targets), true},
		{"creations and updates", of("CREATE, UPDATE", targets), false},
	} {
		p := compile(t, c.text)
		s := subject(t, trigger, deleted)
		a := p.Alterations[0]
		if isAt := slices.ContainsFunc(a.Targets(), func(t policy.Target) bool { return t.IsAt("DELETE") }); isAt != c.want || a.Selects(s) != c.want || len(p.Mutations) > 0 {
			t.Errorf("%s: at deletions %t, selected %t", c.reason, isAt, a.Selects(s))
		}
		results := alter(t, p, s)
		if (len(results) == 1) != c.want {
			t.Fatalf("%s: %+v", c.reason, results)
		}
		if !c.want {
			continue
		}
		made := results[0].Alter(t.Context(), results[0].Selections[0], subject(t, deployment(onePod)).Object.Map())
		if made.Result != policy.Pass || !strings.Contains(written(made.Object), "by settingsDELETE") {
			t.Errorf("%s: %+v", c.reason, made)
		}
		s.OldObject = policy.Content{}
		if results := alter(t, p, s); len(results) != 0 {
			t.Errorf("%s, without the deleted object: %+v", c.reason, results)
		}
	}
	// Of a policy about its own kind, deletions change the others, and nothing is changed at admission.
	self := compile(t, head+strings.Replace(about("configmaps", "  evaluation: {mutateExisting: {enabled: true}}\n"+merges("Object{metadata: Object.metadata{labels: {'a': 'b'}}}")), "CREATE, UPDATE", "DELETE", 1))
	if len(self.Mutations) != 0 || len(alter(t, self, subject(t, trigger, deleted))) != 1 || len(alter(t, self, subject(t, trigger))) != 0 {
		t.Errorf("%+v", self)
	}
}

// TestRequestOfATrigger: in expressions about a target, object is the target and request.object the
// trigger, as in Kyverno; in those about the trigger, both are the trigger.
func TestRequestOfATrigger(t *testing.T) {
	of := func(expression string) string {
		return strings.Replace(existing(targets), "object.metadata.name + ' by ' + request.name", expression, 1) +
			"  matchConditions: [{name: a, expression: \"object.metadata.name == 'settings' && request.object.metadata.name == 'settings'\"}]\n"
	}
	for expression, want := range map[string]string{
		"object.metadata.name + ' by ' + request.object.metadata.name":                                                "web by settings",
		"object.metadata.name + ' by ' + request.?object.metadata.name.orValue('none')":                               "web by settings",
		"has(request.object) && !has(request.oldObject) && !(oldObject != null) ? 'a trigger' : object.metadata.name": "a trigger",
		"string([object, request.object].exists(o, o.kind == 'Deployment') && [object].all(o, o != request.object))":  "true",
		"variables.by + ' of ' + request.object.kind + string(request.object.metadata.name != object.metadata.name)":  "settings of ConfigMaptrue",
	} {
		results := alter(t, compile(t, of(expression)+"  variables: [{name: by, expression: request.object.metadata.name}]\n"), subject(t, trigger))
		if len(results) != 1 || len(results[0].Selections) != 1 {
			t.Fatalf("%s: %+v", expression, results)
		}
		made := results[0].Alter(t.Context(), results[0].Selections[0], subject(t, deployment(onePod)).Object.Map())
		annotations, _ := made.Object["metadata"].(map[string]any)["annotations"].(map[string]any)
		if made.Result != policy.Pass || annotations["of"] != want {
			t.Errorf("%s: %v %v", expression, made.Reasons, annotations)
		}
	}
	if results := alter(t, compile(t, of("'a'")), subject(t, strings.Replace(trigger, "settings", "other", 1))); len(results) != 1 || results[0].Skip == "" {
		t.Errorf("another trigger: %+v", results)
	}
}
