package record_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster/record"
)

func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func event(note string) record.Event {
	return record.Event{
		Regarding: core.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web"},
		Type:      core.EventTypeWarning, Reason: "Denied", Action: "Admit", Note: note,
	}
}

func run(t *testing.T, f func(context.Context)) func() {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	return func() { cancel(); <-done }
}

func newEvents(t *testing.T, client *fake.Clientset) *record.Events {
	t.Helper()
	e, err := record.NewEvents(record.EventOptions{Client: client, Controller: "quaymaster.dev/gateway", Instance: "a"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func written(t *testing.T, client *fake.Clientset) []events.Event {
	t.Helper()
	list, err := client.EventsV1().Events(metav1.NamespaceAll).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestEventsAreWrittenOnceAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		e := newEvents(t, client)
		defer run(t, e.Run)()
		for range 7 {
			e.Record(event("unsigned"))
		}
		broken := event("spec.x: is unknown")
		broken.Regarding.Namespace = ""
		e.Record(broken)
		wait(time.Second)
		list := written(t, client)
		if len(list) != 2 || e.Written() != 2 || e.Dropped() != 0 {
			t.Fatalf("%d events, %d written, %d dropped; want 2, 2, 0", len(list), e.Written(), e.Dropped())
		}
		wait(time.Minute)
		byNamespace := map[string]events.Event{}
		for _, got := range written(t, client) {
			byNamespace[got.Namespace] = got
		}
		if got := byNamespace["shop"]; got.Series == nil || got.Series.Count != 7 || got.Note != "unsigned" || got.ReportingInstance != "a" {
			t.Errorf("got %+v, want it 7 times", got)
		}
		if got := byNamespace["default"]; got.Series != nil || got.Regarding.Name != "web" {
			t.Errorf("about an object of the cluster: got %+v, want it once, in default", got)
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		e := newEvents(t, client)
		for i := range 1200 {
			e.Record(event(fmt.Sprint("note ", i)))
		}
		if got := e.Dropped(); got != 200 {
			t.Errorf("%d dropped before anything was written, want what exceeds the queue", got)
		}
		defer run(t, e.Run)()
		wait(time.Hour)
		if got := len(written(t, client)); got != 11 {
			t.Errorf("%d events about one object for one reason, want 10 and a common one", got)
		}
	})
}

// TestRelatedObjects: an event names its related object, and events that differ in it alone share the
// bound of one object's events.
func TestRelatedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		e := newEvents(t, client)
		defer run(t, e.Run)()
		e.Record(event("alone"))
		for i := range 30 {
			given := event("related")
			given.Regarding = core.ObjectReference{APIVersion: "kyverno.io/v1", Kind: "ClusterPolicy", Name: "signed"}
			given.Related = core.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: fmt.Sprint("web-", i)}
			e.Record(given)
		}
		wait(time.Hour)
		of := map[string]int{}
		for _, got := range written(t, client) {
			of[got.Note]++
			if (got.Related != nil) != (got.Note == "related") || got.Related != nil && (got.Related.Namespace != "shop" || got.Regarding.Name != "signed" || got.Namespace != "default") {
				t.Errorf("%s: %+v", got.Note, got)
			}
		}
		if of["alone"] != 1 || of["related"] != 11 {
			t.Errorf("%v, want one event, and of the policy 10 and a common one", of)
		}
	})
}

func TestEventsThatAreNotTaken(t *testing.T) {
	for _, row := range []struct {
		reason  string
		change  func(*record.Event)
		down    bool
		dropped uint64
	}{
		{"complete", func(*record.Event) {}, false, 0},
		{"the API server is down", func(*record.Event) {}, true, 1},
		{"no object", func(e *record.Event) { e.Regarding.Name = "" }, false, 1},
		{"no reason", func(e *record.Event) { e.Reason = "" }, false, 1},
		{"a type that the API does not know", func(e *record.Event) { e.Type = "Error" }, false, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset()
			if row.down {
				client.PrependReactor("create", "events", func(kubetesting.Action) (bool, runtime.Object, error) {
					return true, nil, errors.New("connection refused")
				})
			}
			e := newEvents(t, client)
			defer run(t, e.Run)()
			given := event("unsigned")
			row.change(&given)
			e.Record(given)
			wait(time.Second)
			if e.Dropped() != row.dropped || e.Written() != 1-row.dropped {
				t.Errorf("%s: %d dropped, %d written", row.reason, e.Dropped(), e.Written())
			}
		})
	}
}

func TestNotesAreClipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		e := newEvents(t, client)
		defer run(t, e.Run)()
		e.Record(event(strings.Repeat("ä", 600) + "\xff"))
		wait(time.Second)
		note := written(t, client)[0].Note
		if len(note) > 1024 || !utf8.ValidString(note) || !strings.HasSuffix(note, "ä…") {
			t.Errorf("the note has %d bytes and ends in %q", len(note), note[len(note)-8:])
		}
	})
}

var policies = schema.GroupVersionResource{Group: "kyverno.io", Version: "v1", Resource: "clusterpolicies"}

func newPolicy() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy",
		"metadata": map[string]any{"name": "p", "uid": "u1", "resourceVersion": "1"},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Other", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}}},
	}}
}

func conditions(t *testing.T, client *dynamicfake.FakeDynamicClient) string {
	t.Helper()
	p, err := client.Resource(policies).Get(context.WithoutCancel(t.Context()), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := unstructured.NestedSlice(p.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, c := range list {
		words = append(words, fmt.Sprint(c.(map[string]any)["type"], "=", c.(map[string]any)["status"]))
	}
	return strings.Join(words, " ")
}

// reporting makes a Reporter of a list, and the function that reports a change of it.
func reporting(client *dynamicfake.FakeDynamicClient, list func() []record.Desired, failed func(error)) (r *record.Reporter, changed func()) {
	next := make(chan chan struct{}, 1)
	next <- make(chan struct{})
	changed = func() {
		close(<-next)
		next <- make(chan struct{})
	}
	now := func() <-chan struct{} {
		current := <-next
		next <- current
		return current
	}
	return &record.Reporter{Client: client, Desired: list, Failed: failed, Changed: now}, changed
}

func TestStatus(t *testing.T) {
	ready := metav1.Condition{Type: "Ready", Status: "False", Reason: "Broken", Message: "spec.x: is unknown"}
	refused := apierrors.NewForbidden(policies.GroupResource(), "p", errors.New("no role"))
	for _, row := range []struct {
		reason, uid string
		failures    int32 // of the patch
		err         error
		want        string
		reported    int
	}{
		{"beside what another wrote", "u1", 0, nil, "Other=True Ready=False", 0},
		{"one of the same name that was made since", "u2", 0, nil, "Other=True", 0},
		{"tried again", "u1", 4, errors.New("connection refused"), "Other=True Ready=False", 1},
		{"refused: not tried again within a minute", "u1", 1, refused, "Other=True", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), newPolicy())
			var failures atomic.Int32
			failures.Store(row.failures)
			patches, reported := 0, 0
			client.PrependReactor("patch", "*", func(action kubetesting.Action) (bool, runtime.Object, error) {
				patches++
				if action.GetSubresource() != "status" {
					t.Errorf("%s: patched %q, not the status", row.reason, action.GetSubresource())
				}
				return failures.Add(-1) >= 0, nil, row.err
			})
			object := record.Object{Resource: policies, Name: "p", UID: "u1"}
			if row.uid != "u1" {
				object.UID = "u2"
			}
			s, changed := reporting(client, func() []record.Desired { return []record.Desired{{Object: object, Condition: ready}} }, func(error) { reported++ })
			defer run(t, s.Run)()
			wait(59 * time.Second)
			if got := conditions(t, client); got != row.want || reported != row.reported {
				t.Errorf("%s: conditions %q, reported %d; want %q, %d", row.reason, got, reported, row.want, row.reported)
			}
			before := patches
			changed()
			wait(3 * time.Minute)
			if row.failures == 0 && patches != before {
				t.Errorf("%s: the same condition was written again", row.reason)
			}
			if got := conditions(t, client); row.failures > 0 && got != "Other=True Ready=False" {
				t.Errorf("%s: conditions %q in the end", row.reason, got)
			}
		})
	}
}

// TestStatusOfMany: of many conditions that change at once, the last one of each object is
// written, once, in the order of the objects, and no faster than the limit.
func TestStatusOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 50
		var list []runtime.Object
		for i := range many {
			p := newPolicy()
			p.SetName(fmt.Sprint("p", i))
			p.SetUID(types.UID(fmt.Sprint("u", i)))
			list = append(list, p)
		}
		client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), list...)
		var mu sync.Mutex // the writer's timer runs in parallel with the test
		var written, want []string
		client.PrependReactor("patch", "*", func(action kubetesting.Action) (bool, runtime.Object, error) {
			patch, _ := action.(kubetesting.PatchAction)
			if !strings.Contains(string(patch.GetPatch()), "Active") {
				t.Errorf("written is %s", patch.GetPatch())
			}
			mu.Lock()
			defer mu.Unlock()
			written = append(written, patch.GetName())
			return false, nil, nil
		})
		condition := metav1.Condition{Type: "Ready", Status: "Unknown", Reason: "WebhookNotObserved"}
		s, changed := reporting(client, func() []record.Desired {
			var all []record.Desired
			for i := range many {
				all = append(all, record.Desired{
					Object: record.Object{Resource: policies, Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint("u", i))}, Condition: condition,
				})
			}
			return all
		}, func(err error) { t.Error(err) })
		for i := range many {
			want = append(want, fmt.Sprint("p", i))
		}
		condition = metav1.Condition{Type: "Ready", Status: "True", Reason: "Active"}
		stop := run(t, s.Run)
		wait(time.Second)
		mu.Lock()
		early := len(written)
		mu.Unlock()
		if early > 40 {
			t.Errorf("%d are written within a second", early)
		}
		changed()
		wait(time.Minute)
		stop()
		if !slices.Equal(written, want) {
			t.Errorf("written are %d: %v", len(written), written)
		}
	})
}

// TestStatusWithin: where a kind keeps its conditions in a field of the status, they
// are written there, with whether it is ready.
func TestStatusWithin(t *testing.T) {
	for ready, want := range map[metav1.ConditionStatus]bool{metav1.ConditionTrue: true, metav1.ConditionFalse: false} {
		client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), newPolicy())
		for range 2 {
			s, _ := reporting(client, func() []record.Desired {
				return []record.Desired{{
					Object:    record.Object{Resource: policies, Name: "p", UID: "u1", Within: "conditionStatus"},
					Condition: metav1.Condition{Type: "Ready", Status: ready, Reason: "R"},
				}}
			}, func(err error) { t.Error(err) })
			s.Round(t.Context())
		}
		got, err := client.Resource(policies).Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		within, _, _ := unstructured.NestedMap(got.Object, "status", "conditionStatus")
		if list, _ := within["conditions"].([]any); within["ready"] != want || len(list) != 1 {
			t.Errorf("%s: %v", ready, within)
		}
		if got := conditions(t, client); got != "Other=True" {
			t.Errorf("%s: beside it stands %q", ready, got)
		}
	}
}

func TestConstructorsRefuse(t *testing.T) {
	if _, err := record.NewEvents(record.EventOptions{Client: fake.NewClientset(), Controller: "c"}); err == nil {
		t.Error("incomplete options were accepted")
	}
}
