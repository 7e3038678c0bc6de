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
