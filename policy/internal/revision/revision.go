// Package revision compares an object with its state before an update.
package revision

import (
	"maps"
	"reflect"

	"github.com/quaymaster/quaymaster/policy"
)

// Changes reports whether an update changes a member of the object (spec, metadata), apart from
// what the API server writes into metadata itself.
func Changes(s *policy.Subject, member string) bool {
	return !reflect.DeepEqual(authored(s.Object, member), authored(s.OldObject, member))
}

// ChangesObject reports whether an update changes any member of the object, apart from its
// status: kinds such as PodTemplate have their content in no spec.
func ChangesObject(s *policy.Subject) bool {
	changes := func(object policy.Content) bool {
		for member := range object.Map() {
			if member != "status" && Changes(s, member) {
				return true
			}
		}
		return false
	}
	return changes(s.Object) || changes(s.OldObject)
}

// authored returns a member without the fields of metadata that change with each update.
func authored(object policy.Content, member string) any {
	value := object.Map()[member]
	metadata, is := value.(map[string]any)
	if !is || member != "metadata" {
		return value
	}
	metadata = maps.Clone(metadata)
	for _, name := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(metadata, name)
	}
	return metadata
}

// ScalesDown reports whether fewer replicas are all that an update changes in the spec.
func ScalesDown(s *policy.Subject) bool {
	spec, _ := s.Object.Map()["spec"].(map[string]any)
	old, _ := s.OldObject.Map()["spec"].(map[string]any)
	replicas, isNumber := spec["replicas"].(float64)
	before, wasNumber := old["replicas"].(float64)
	if !isNumber || !wasNumber || replicas >= before {
		return false
	}
	same := maps.Clone(old)
	same["replicas"] = replicas
	return reflect.DeepEqual(spec, same)
}
