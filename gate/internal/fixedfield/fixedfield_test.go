package fixedfield_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/gate/internal/fixedfield"
	"github.com/quaymaster/quaymaster/policy"
)

func TestIs(t *testing.T) {
	old := policy.ContentOf(map[string]any{"spec": map[string]any{"ephemeralContainers": []any{map[string]any{"name": "a"}}}})
	for _, row := range []struct {
		why              string
		group, kind, at  string
		operation        string
		isCreation, want bool
	}{
		{"a Job's template", "batch", "Job", "/spec/template/spec/containers/0/image", "UPDATE", false, true},
		{"of a new Job", "batch", "Job", "/spec/template/spec/containers/0/image", "CREATE", true, false},
		{"a Deployment's template", "apps", "Deployment", "/spec/template/spec/containers/0/image", "UPDATE", false, false},
		{"a CronJob's template", "batch", "CronJob", "/spec/jobTemplate/spec/template/spec/containers/0/image", "UPDATE", false, false},
		{"another group's Job", "batch.example", "Job", "/spec/template/spec/containers/0/image", "UPDATE", false, false},
		{"a volume", "", "Pod", "/spec/volumes/0/image/reference", "UPDATE", false, true},
		{"a container", "", "Pod", "/spec/containers/0/image", "UPDATE", false, false},
		{"an init container", "", "Pod", "/spec/initContainers/0/image", "UPDATE", false, false},
		{"a present ephemeral container", "", "Pod", "/spec/ephemeralContainers/0/image", "UPDATE", false, true},
		{"an added ephemeral container", "", "Pod", "/spec/ephemeralContainers/1/image", "UPDATE", false, false},
	} {
		s := &policy.Subject{Group: row.group, Kind: row.kind, Operation: row.operation, OldObject: old}
		if row.isCreation {
			s.OldObject = policy.Content{}
		}
		if got := fixedfield.Is(s, row.at); got != row.want {
			t.Errorf("%s: %t, want %t", row.why, got, row.want)
		}
	}
	if fixedfield.Is(nil, "/spec/volumes/0/image/reference") {
		t.Error("an image without an object is no update")
	}
}
