package reconcile

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/webhook/configuration"
)

func tekton() schema.GroupVersion { return schema.GroupVersion{Group: "tekton.dev", Version: "v1"} }

// TestNewLeaderRemembers: a replica that comes to lead while a part of discovery
// fails takes no webhooks away.
func TestNewLeaderRemembers(t *testing.T) {
	const tasks = "tekton.dev/v1/tasks"
	tests := []struct {
		reason   string
		later    func(*bench) // after the leader before wrote, and left
		required bool
		err      string
	}{
		{"discovery of the group failed", func(*bench) {}, true, ""},
		{"it did not: the resource is gone", func(b *bench) { b.source.input.Failed = nil }, false, ""},
		{"another one failed", func(b *bench) { b.source.input.Failed[0].Version = "v2" }, false, ""},
		{"no policy matches it any more", func(b *bench) { b.source.input.Policies = b.source.input.Policies[1:] }, false, ""},
		{"the stored list cannot be read", func(b *bench) { b.validating.getting = errors.New("timeout") }, true, "timeout"},
		{"or not be understood", func(b *bench) { b.validating.object.Annotations[configuration.StoredResources] = "{" }, true, configuration.StoredResources},
		{"it cannot be understood, and need not be", func(b *bench) {
			b.source.input.Failed, b.validating.object.Annotations[configuration.StoredResources] = nil, "{"
		}, false, ""},
		{"nothing was there", func(b *bench) { b.validating.object = nil }, false, ""},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			in := input(t, about([]string{"Task"}, named("tasks")), about([]string{"Job"}, named("jobs")))
			b := newBench(t, in)
			b.round(t)
			b.source.input.Resources = slices.DeleteFunc(served(), func(r configuration.Resource) bool { return r.Kind == "Task" })
			b.source.input.Failed = []schema.GroupVersion{tekton()}
			test.later(b)
			b.lead(t)
			for range 2 { // a stored resource stays stored
				err := b.reconciler.Reconcile(t.Context())
				if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
					t.Fatalf("got %v, want %q", err, test.err)
				}
			}
			if got := strings.Join(lines(b.validating.object.Webhooks), ";"); strings.Contains(got, tasks) != test.required {
				t.Errorf("asked is %s", got)
			}
		})
	}
}

// A policy that changed meanwhile counts as it is now: kinds are remembered, not
// webhooks.
func TestRemembersKindsAlone(t *testing.T) {
	b := newBench(t, input(t, about([]string{"Task"}, open)))
	b.round(t)
	b.source.input = input(t, about([]string{"Task"}, in("shop")))
	b.source.input.Resources = served()[:3]
	b.source.input.Failed = []schema.GroupVersion{tekton()}
	b.lead(t)
	b.round(t)
	if got := lines(b.validating.object.Webhooks); len(got) != 1 || got[0] != "fail-own In(shop) | CU tekton.dev/v1/tasks" {
		t.Errorf("got %q", got)
	}
}

// FuzzRecall reads annotations that any client may have written.
func FuzzRecall(f *testing.F) {
	whole, err := json.Marshal(served())
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(whole), "", "null", "[null]", "{}", `[{"group":"tekton.dev","version":"v1","name":"x"}]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c admission.ValidatingWebhookConfiguration
		c.Annotations = map[string]string{configuration.StoredResources: text}
		found, err := restoreResources(&c, []schema.GroupVersion{tekton()})
		for _, r := range found {
			if err != nil || r.Group != "tekton.dev" || r.Version != "v1" || r.Name == "" || r.Kind == "" {
				t.Errorf("found %+v, %v", r, err)
			}
		}
		if text == string(whole) && (len(found) != 1 || !reflect.DeepEqual(found[0], configuration.Resource{Group: "tekton.dev", Version: "v1", Name: "tasks", Kind: "Task", Namespaced: true})) {
			t.Errorf("found %+v of the whole", found)
		}
	})
}
