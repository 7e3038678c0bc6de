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

// WrittenAnnotation is a Pod's record of its images before they were pinned or redirected: a JSON
// object of container names and images. A volume's name has the prefix "volume/", which no
// container name can have. An ephemeral container has no entry, because the API server does not
// change the annotations of a Pod when one is added.
//
// The record is for people and for the next update: an image that the update writes in its original
// form is replaced by the running one. The record cannot lead to any other image. Mutate restores a
// changed record, and Validate denies an update that changes it.
const WrittenAnnotation = "quaymaster.dev/written"

const (
	annotationsPath = "/metadata/annotations"
	writtenPath     = annotationsPath + "/quaymaster.dev~1written"
)

// containerKey identifies an image in a Pod, in both its old and its new version.
func containerKey(u workload.Use) string {
	if u.Role == workload.Volume {
		return "volume/" + u.Container
	}
	return u.Container
}

// byContainer returns the images of an object by place. A duplicate name has no image.
func byContainer(uses []workload.Use) map[string]workload.Use {
	found := make(map[string]workload.Use, len(uses))
	for _, use := range uses {
		if _, twice := found[containerKey(use)]; twice {
			use = workload.Use{}
		}
		found[containerKey(use)] = use
	}
	return found
}

// isUnchanged reports whether the same image was in the same place and role before.
func isUnchanged(before map[string]workload.Use, use workload.Use) bool {
	previous := before[containerKey(use)]
	return use.Text != "" && previous.Text == use.Text && previous.Role == use.Role
}

// restore returns the operations that put back the running images if the update contains their
// original references. A second manager that applies the same manifest therefore changes nothing.
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
		return nil, nil //nolint:nilerr // nothing to restore; the gate reports the error
	}
	running, asked := byContainer(before), byContainer(now)
	var operations []workload.Operation
	for _, use := range now {
		previous := running[containerKey(use)]
		unique := asked[containerKey(use)].Pointer == use.Pointer
		if !unique || previous.Role != use.Role || written[containerKey(use)] != use.Text || !became(copies, previous.Text, use.Text) {
			continue
		}
		pin, err := workload.Pin(use, previous.Text)
		if err != nil {
			return nil, err
		}
		operations = append(operations, pin...)
	}
	return operations, nil
}

// record returns the operations that update the annotation, given the gate's operations; old is
// zero at creation. The entry of an image that ran before is kept. Another existing entry is kept
// if it agrees with the image, so that a second call changes nothing. Otherwise it is removed,
// because the gateway did not write it.
func record(copies Copies, object, old workload.Object, changes []workload.Operation) ([]workload.Operation, error) {
	before, isThere := annotation(object)
	previous, wasThere := annotation(old)
	if len(changes) == 0 && !isThere && !wasThere {
		return nil, nil
	}
	uses, err := workload.Extract(object)
	if err != nil {
		return nil, err
	}
	// An unreadable old object vouches for no entry.
	oldUses, _ := workload.Extract(old)
	running := byContainer(oldUses)
	isNew := func(use workload.Use) bool { return !isUnchanged(running, use) }
	if len(changes) == 0 && isThere == wasThere && reflect.DeepEqual(before, previous) && !slices.ContainsFunc(uses, isNew) {
		return nil, nil
	}
	replaced := map[string]string{}
	for _, op := range changes {
		if text, ok := op.Value.(string); ok && op.Op == "replace" {
			replaced[op.Path] = text
		}
	}
	oldEntries, newEntries, entries := recorded(old), recorded(object), map[string]string{}
	for name, use := range byContainer(uses) {
		after := cmp.Or(replaced[use.Pointer], use.Text)
		switch text, known := oldEntries[name]; {
		case known && after == use.Text && isUnchanged(running, use):
			entries[name] = text
		case became(copies, use.Text, newEntries[name]) && became(copies, after, newEntries[name]):
			entries[name] = newEntries[name]
		case became(copies, after, use.Text):
			entries[name] = use.Text
		}
	}
	return rewrite(object, before, isThere, encode(entries)), nil
}

// rewrite returns the operations that set the annotation, or remove it if it is empty.
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

// metadata returns an object's metadata.
func metadata(object workload.Object) workload.Value { return object.Root().Member("metadata") }

// annotation returns the value of the annotation.
func annotation(object workload.Object) (any, bool) {
	value := metadata(object).Member("annotations").Member(WrittenAnnotation)
	return value.Decoded(), value.Kind() != jsontext.KindInvalid
}

// recorded parses the annotation. An invalid one has no entries.
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

// encode encodes the entries sorted by name; without entries it is empty.
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

// sameImages reports whether an object runs the same images as before, in the standard fields of a
// pod specification.
func sameImages(object, old workload.Object) (bool, error) {
	now, err := workload.Extract(object)
	if err != nil {
		return false, fmt.Errorf("new state: %w", err)
	}
	before, err := workload.Extract(old)
	if err != nil {
		return false, fmt.Errorf("old state: %w", err)
	}
	running := byContainer(before)
	for _, use := range now {
		if previous := running[containerKey(use)]; previous.Text != use.Text || previous.Role != use.Role {
			return false, nil
		}
	}
	return true, nil
}
