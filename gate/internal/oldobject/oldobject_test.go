package oldobject

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/workload"
)

func read(t *testing.T, text string) workload.Object {
	t.Helper()
	objects, err := workload.Read(strings.NewReader(text), "test")
	if err != nil {
		t.Fatal(err)
	}
	return objects[0]
}

const pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: nginx}, {name: b, image: redis}]}}"

func TestRan(t *testing.T) {
	for _, c := range []struct {
		reason, updated string
		want            bool
	}{
		{"the same container", "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: nginx}]}}", true},
		{"another place in the list", "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: c}, {name: a, image: nginx}]}}", true},
		{"another image", "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: redis}]}}", false},
		{"another container", "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: b, image: nginx}]}}", false},
		{"an init container", "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {initContainers: [{name: a, image: nginx}]}}", false},
		{"another kind", "{apiVersion: v1, kind: ReplicationController, metadata: {name: a}, spec: {template: {spec: {containers: [{name: a, image: nginx}]}}}}", false},
	} {
		updated := read(t, c.updated)
		old := Of(read(t, pod), updated)
		uses, err := workload.Extract(updated)
		if err != nil {
			t.Fatal(err)
		}
		if got := old.Ran(uses[len(uses)-1]); got != c.want {
			t.Errorf("%s: got %t", c.reason, got)
		}
	}
}

// TestRanInCustomResource: a custom resource may have several pod specifications, and containers without a name.
func TestRanInCustomResource(t *testing.T) {
	const head = "{apiVersion: example.com/v1, kind: Custom, metadata: {name: a}, spec: "
	old := head + "{template: {spec: {containers: [{name: a, image: nginx}, {image: redis}], volumes: [{name: v, image: {reference: data}}]}}}}"
	for _, c := range []struct {
		reason, updated string
		want            bool
	}{
		{"the same container", head + "{template: {spec: {containers: [{name: a, image: nginx}]}}}}", true},
		{"another place in the list", head + "{template: {spec: {containers: [{name: b, image: b}, {name: a, image: nginx}]}}}}", true},
		{"another pod specification", head + "{containers: [{name: a, image: nginx}]}}", false},
		{"without a name, in its place", head + "{template: {spec: {containers: [{name: a, image: nginx}, {image: redis}]}}}}", true},
		{"without a name, in another place", head + "{template: {spec: {containers: [{image: redis}]}}}}", false},
		{"the same volume", head + "{template: {spec: {volumes: [{name: w, image: {reference: w}}, {name: v, image: {reference: data}}]}}}}", true},
		{"another volume", head + "{template: {spec: {volumes: [{name: w, image: {reference: data}}]}}}}", false},
	} {
		updated := read(t, c.updated)
		uses, err := workload.Extract(updated)
		if err != nil || len(uses) == 0 {
			t.Fatal(c.reason, uses, err)
		}
		if got := Of(read(t, old), updated).Ran(uses[len(uses)-1]); got != c.want {
			t.Errorf("%s: got %t", c.reason, got)
		}
	}
}

func TestNone(t *testing.T) {
	updated := read(t, pod)
	uses, err := workload.Extract(updated)
	if err != nil {
		t.Fatal(err)
	}
	if old := Of(workload.Object{}, updated); !old.IsZero() || old.Ran(uses[0]) {
		t.Errorf("without an old object: %v", old)
	}
}
