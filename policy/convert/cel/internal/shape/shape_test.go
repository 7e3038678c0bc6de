package shape_test

import (
	"fmt"
	"reflect"
	"testing"

	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
)

// TestFields: the shapes of fields of a pod are those that an API server has.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		path  []string
		kinds shape.Kinds
		sure  bool // of the last step
		full  bool
	}{
		{[]string{"kind"}, shape.Text, true, true}, {[]string{"metadata", "name"}, shape.Text, false, true},
		{[]string{"metadata", "labels", "app"}, shape.Text, false, false}, {[]string{"spec"}, shape.Object, true, false},
		{[]string{"spec", "nodeName"}, shape.Text, false, true}, {[]string{"spec", "hostNetwork"}, shape.Bool, false, true},
		{[]string{"spec", "priority"}, shape.Number, false, false}, {[]string{"spec", "containers"}, shape.List, true, true},
		{[]string{"metadata", "creationTimestamp"}, shape.Text | shape.Null, false, true},
	} {
		of, sure, found := shape.Of([]reflect.Type{reflect.TypeFor[core.Pod]()}), false, false
		for _, name := range c.path {
			of, sure, found = of.Field(name)
		}
		if !found || of.Kinds != c.kinds || sure != c.sure || of.Full != c.full {
			t.Errorf("%v: %+v, sure %t, found %t", c.path, of, sure, found)
		}
	}
	pod := shape.Of([]reflect.Type{reflect.TypeFor[core.Pod]()})
	if _, _, found := pod.Field("data"); found {
		t.Error("a pod has data")
	}
	if of, _, found := shape.Of(nil).Field("data"); !found || of.Kinds != shape.Any {
		t.Errorf("an unknown kind has %+v", of)
	}
	labels, _, _ := metadata(pod).Field("labels")
	if !metadata(pod).Closed() || labels.Closed() {
		t.Error("the names of labels are data, and those of fields are none")
	}
}

func metadata(pod shape.Shape) shape.Shape {
	of, _, _ := pod.Field("metadata")
	return of
}

func ExampleOf() {
	pod := shape.Of([]reflect.Type{reflect.TypeFor[core.Pod]()})
	spec, _, _ := pod.Field("spec")
	containers, sure, _ := spec.Field("containers")
	image, _, _ := containers.Element().Field("image")
	fmt.Println(containers.Is(shape.List), sure, image.Is(shape.Text))
	// Output: true true true
}
