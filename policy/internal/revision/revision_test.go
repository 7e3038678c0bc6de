package revision_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/revision"
)

// TestChanges: fields that the API server writes with each update are no change.
func TestChanges(t *testing.T) {
	of := func(spec, label, version string) policy.Content {
		return policy.ContentOf(map[string]any{
			"spec":     map[string]any{"a": spec},
			"metadata": map[string]any{"labels": map[string]any{"a": label}, "resourceVersion": version, "generation": version, "managedFields": []any{version}},
		})
	}
	for _, c := range []struct {
		reason         string
		now            policy.Content
		spec, metadata bool
	}{
		{"nothing", of("a", "a", "2"), false, false},
		{"a label", of("a", "b", "2"), false, true},
		{"the spec", of("b", "a", "2"), true, false},
		{"no metadata", policy.ContentOf(map[string]any{"spec": map[string]any{"a": "a"}}), false, true},
	} {
		s := &policy.Subject{Object: c.now, OldObject: of("a", "a", "1")}
		if revision.Changes(s, "spec") != c.spec || revision.Changes(s, "metadata") != c.metadata {
			t.Errorf("%s: spec %t, metadata %t", c.reason, revision.Changes(s, "spec"), revision.Changes(s, "metadata"))
		}
	}
}

// TestChangesObject: content may be in any member.
func TestChangesObject(t *testing.T) {
	of := func(member string, value any, version string) policy.Content {
		return policy.ContentOf(map[string]any{"kind": "A", "metadata": map[string]any{"resourceVersion": version}, member: value})
	}
	for _, c := range []struct {
		reason   string
		old, now policy.Content
		want     bool
	}{
		{"nothing", of("spec", "a", "1"), of("spec", "a", "2"), false},
		{"the spec", of("spec", "a", "1"), of("spec", "b", "2"), true},
		{"a template outside of a spec", of("template", "a", "1"), of("template", "b", "2"), true},
		{"data", of("data", map[string]any{"a": "b"}, "1"), of("data", map[string]any{"a": "c"}, "2"), true},
		{"a member that is new", of("status", "a", "1"), of("data", "a", "2"), true},
		{"a member that is removed", of("data", "a", "1"), of("status", "a", "2"), true},
		{"the status", of("status", "a", "1"), of("status", "b", "2"), false},
	} {
		if got := revision.ChangesObject(&policy.Subject{Object: c.now, OldObject: c.old}); got != c.want {
			t.Errorf("%s: %t", c.reason, got)
		}
	}
}

// TestScalesDown: fewer replicas, and nothing else.
func TestScalesDown(t *testing.T) {
	of := func(replicas any, image string) policy.Content {
		return policy.ContentOf(map[string]any{"spec": map[string]any{"replicas": replicas, "image": image}})
	}
	for _, c := range []struct {
		reason   string
		old, now policy.Content
		want     bool
	}{
		{"fewer", of(3.0, "a"), of(2.0, "a"), true},
		{"as many", of(3.0, "a"), of(3.0, "a"), false},
		{"more", of(2.0, "a"), of(3.0, "a"), false},
		{"fewer, and another image", of(3.0, "a"), of(2.0, "b"), false},
		{"no number", of("3", "a"), of(2.0, "a"), false},
		{"no spec", policy.ContentOf(map[string]any{}), of(2.0, "a"), false},
	} {
		if got := revision.ScalesDown(&policy.Subject{Object: c.now, OldObject: c.old}); got != c.want {
			t.Errorf("%s: %t", c.reason, got)
		}
	}
}
