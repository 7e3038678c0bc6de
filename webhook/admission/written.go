package admission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quaymaster/quaymaster/workload"
)

// WrittenAnnotation is where a Pod keeps what was written before its images were
// pinned or redirected: a JSON object of container names and images. A volume's
// name has "volume/" before it, which no container's may have. An ephemeral
// container has no entry: the API server keeps the annotations of a Pod as they
// are when one is added.
//
// It is a record for people and for the next update, where an image that is
// written as before is put back to the one that runs already. Whatever it says,
// it leads to no other image than that. It is the gateway's: an update that
// changes it is put right by Mutate and refused by Validate.
const WrittenAnnotation = "quaymaster.dev/written"

const (
	annotationsPath = "/metadata/annotations"
	writtenPath     = annotationsPath + "/quaymaster.dev~1written"
)

// place names an image in a Pod, the same in its former and in its new state.
func place(u workload.Use) string {
	if u.Role == workload.Volume {
		return "volume/" + u.Container
	}
	return u.Container
}

// byPlace returns the images of an object; a name that stands twice names none.
func byPlace(uses []workload.Use) map[string]workload.Use {
	found := make(map[string]workload.Use, len(uses))
	for _, use := range uses {
		if _, twice := found[place(use)]; twice {
			use = workload.Use{}
		}
		found[place(use)] = use
	}
	return found
}

// ran reports whether an image is what stood at its place before, in the same
// role.
func ran(before map[string]workload.Use, use workload.Use) bool {
	former := before[place(use)]
	return use.Text != "" && former.Text == use.Text && former.Role == use.Role
}

// restore returns the operations that put back the images that the Pod runs
// already, where the update writes what was written for them. So a second
// manager that applies the same manifest changes nothing.
func restore(copies Copies, object, old workload.Object) ([]workload.Operation, error) {
	written := recorded(old)
	if len(written) == 0 {
		return nil, nil
	}
	now, err := workload.Extract(object)
	if err != nil {
		return nil, err
	}
	before, err := workload.Extract(old)
	if err != nil {
		return nil, nil //nolint:nilerr // then there is nothing to put back, and the gate says what is wrong
	}
	running, asked := byPlace(before), byPlace(now)
	var operations []workload.Operation
	for _, use := range now {
		former := running[place(use)]
		unique := asked[place(use)].Pointer == use.Pointer
		if !unique || former.Role != use.Role || written[place(use)] != use.Text || !became(copies, former.Text, use.Text) {
			continue
		}
		pin, err := workload.Pin(use, former.Text)
		if err != nil {
			return nil, err
		}
		operations = append(operations, pin...)
	}
	return operations, nil
}

// record returns the operations that make the annotation say what was written,
// given those that the gate wants; old is zero at creation. An entry of an image
// that ran before this update is what it was. Any other that was there before is
// kept where it agrees with the image, so that a second call changes nothing, and
// goes where it does not: somebody else wrote it.
func record(copies Copies, object, old workload.Object, changes []workload.Operation) ([]workload.Operation, error) {
	before, isThere := annotation(object)
	former, wasThere := annotation(old)
	if len(changes) == 0 && !isThere && !wasThere {
		return nil, nil
	}
	uses, err := workload.Extract(object)
	if err != nil {
		return nil, err
	}
	// Where old cannot be read, it vouches for nothing.
	oldUses, _ := workload.Extract(old)
	running := byPlace(oldUses)
	isNew := func(use workload.Use) bool { return !ran(running, use) }
	if len(changes) == 0 && isThere == wasThere && reflect.DeepEqual(before, former) && !slices.ContainsFunc(uses, isNew) {
		return nil, nil
	}
	replaced := map[string]string{}
	for _, op := range changes {
		if text, ok := op.Value.(string); ok && op.Op == "replace" {
			replaced[op.Path] = text
		}
	}
	was, said, entries := recorded(old), recorded(object), map[string]string{}
	for name, use := range byPlace(uses) {
		after := cmp.Or(replaced[use.Pointer], use.Text)
		switch text, known := was[name]; {
		case known && after == use.Text && ran(running, use):
			entries[name] = text
		case became(copies, use.Text, said[name]) && became(copies, after, said[name]):
			entries[name] = said[name]
		case became(copies, after, use.Text):
			entries[name] = use.Text
		}
	}
	return rewrite(object, before, isThere, encode(entries)), nil
}

// rewrite returns the operations that change the annotation; an empty one is
// none.
func rewrite(object workload.Object, before any, isThere bool, after string) []workload.Operation {
	test := workload.Operation{Op: "test", Path: writtenPath, Value: before}
	add := workload.Operation{Op: "add", Path: writtenPath, Value: after}
	switch {
	case isThere && after == "":
		return []workload.Operation{test, {Op: "remove", Path: writtenPath}}
	case isThere && before != any(after):
		return []workload.Operation{test, {Op: "replace", Path: writtenPath, Value: after}}
	case isThere || after == "":
		return nil
	}
	empty := map[string]any{}
	switch metadata := metadata(object); {
	case !metadata.IsObject():
		return []workload.Operation{{Op: "add", Path: "/metadata", Value: empty}, {Op: "add", Path: annotationsPath, Value: empty}, add}
	case metadata.Member("annotations").IsNull():
		return []workload.Operation{{Op: "add", Path: annotationsPath, Value: empty}, add}
	}
	return []workload.Operation{add}
}

// metadata returns what an object says of itself.
func metadata(object workload.Object) workload.Value { return object.Root().Member("metadata") }

// annotation returns what stands in the annotation.
func annotation(object workload.Object) (any, bool) {
	value := metadata(object).Member("annotations").Member(WrittenAnnotation)
	return value.Decoded(), value.Kind() != jsontext.KindInvalid
}

// recorded reads the annotation. One that cannot be read says nothing.
func recorded(object workload.Object) map[string]string {
	value, _ := annotation(object)
	text, ok := value.(string)
	if !ok || len(text) > maxWritten {
		return nil
	}
	var entries map[string]string
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil
	}
	return entries
}

// encode writes entries in the order of their names; none is nothing.
func encode(entries map[string]string) string {
	if len(entries) == 0 {
		return ""
	}
	b := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(entries)) {
		b = quote(separate(b, i), name)
		b = quote(append(b, ':'), entries[name])
	}
	return string(append(b, '}'))
}

// sameImages reports whether an object runs what it ran before, at the standard
// places of a pod specification.
func sameImages(object, old workload.Object) (bool, error) {
	now, err := workload.Extract(object)
	if err != nil {
		return false, fmt.Errorf("new state: %w", err)
	}
	before, err := workload.Extract(old)
	if err != nil {
		return false, fmt.Errorf("old state: %w", err)
	}
	running := byPlace(before)
	for _, use := range now {
		if former := running[place(use)]; former.Text != use.Text || former.Role != use.Role {
			return false, nil
		}
	}
	return true, nil
}
