package generate_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// deletion is the subject of a deleted object.
func deletion(t *testing.T, text string) *policy.Subject {
	t.Helper()
	s := subject(t, text, policy.User{})
	s.Operation, s.OldObject, s.Object = "DELETE", s.Object, policy.Content{}
	return s
}

// TestDeletions: the deletion of an object is a trigger of rules that name the operation, which read the
// deleted object as the object and as the old one.
func TestDeletions(t *testing.T) {
	const made = "apiVersion: v1, kind: ConfigMap, name: 'was-{{request.object.metadata.name}}', namespace: b, data: {data: {main: '{{request.oldObject.data.main}}', by: '{{request.operation}}'}}"
	for _, c := range []struct {
		reason, match string
		deletions     bool
		result        policy.Result
		operations    []string
	}{
		{"any", "any: [{resources: {kinds: [ConfigMap], operations: [DELETE]}}]", true, policy.Pass, []string{"DELETE"}},
		{"creations, too", "any: [{resources: {kinds: [ConfigMap], operations: [CREATE, DELETE]}}]", true, policy.Pass, []string{"CREATE", "DELETE"}},
		{"the old form", "resources: {kinds: [ConfigMap], operations: [DELETE]}", true, policy.Pass, []string{"DELETE"}},
		{"all", "all: [{resources: {kinds: [ConfigMap]}}, {resources: {operations: [DELETE]}}]", true, policy.Pass, []string{"CREATE", "UPDATE", "DELETE"}},
		{"another name", "any: [{resources: {kinds: [ConfigMap], names: [other], operations: [DELETE]}}]", true, "", []string{"DELETE"}},
		{"no operation", "any: [{resources: {kinds: [ConfigMap]}}]", false, "", nil},
		{"another operation", "any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]", false, "", []string{"CREATE"}},
	} {
		g := generation(t, "", "name: r\nmatch: {"+c.match+"}\ngenerate: {"+made+"}")
		if g.Terms().Deletions != c.deletions || !reflect.DeepEqual(g.Targets()[0].Operations, c.operations) {
			t.Errorf("%s: %+v, %+v", c.reason, g.Terms(), g.Targets())
		}
		s := deletion(t, trigger)
		got := g.Generate(t.Context(), policy.Case{Subject: s})
		if got.Result != c.result || g.Selects(s) != (c.result == policy.Pass) {
			t.Errorf("%s: %q %v, selected %t", c.reason, got.Result, got.Reasons, g.Selects(s))
		}
		if c.result != policy.Pass {
			continue
		}
		object := got.Objects[0].Object
		if object["metadata"].(map[string]any)["name"] != "was-metrics-address" || !reflect.DeepEqual(object["data"], map[string]any{"main": "http://new:9090", "by": "DELETE"}) {
			t.Errorf("%s: %v", c.reason, object)
		}
		s.OldObject = policy.Content{}
		if got := g.Generate(t.Context(), policy.Case{Subject: s}); got.Result != "" {
			t.Errorf("%s, without the deleted object: %q", c.reason, got.Result)
		}
		s = deletion(t, trigger)
		s.Subresource = "status"
		if got := g.Generate(t.Context(), policy.Case{Subject: s}); got.Result != "" || g.Selects(s) {
			t.Errorf("%s, of a subresource: %q", c.reason, got.Result)
		}
	}
	rule := "name: r\nmatch: {any: [{resources: {kinds: [ConfigMap], operations: [DELETE]}}]}\nmutate: {targets: [{apiVersion: v1, kind: Pod, name: '{{request.object.metadata.name}}'}]" + patched
	if got := alteration(t, "", rule).Existing(t.Context(), policy.Case{Subject: deletion(t, trigger)}); got.Result != policy.Pass || got.Selections[0].Name != "metrics-address" {
		t.Errorf("targets: %q %v %v", got.Result, got.Reasons, got.Selections)
	}
	creations := alteration(t, "", strings.Replace(rule, "DELETE", "CREATE", 1))
	if got := creations.Existing(t.Context(), policy.Case{Subject: deletion(t, trigger)}); got.Result != "" {
		t.Errorf("targets of creations: %q", got.Result)
	}
}
