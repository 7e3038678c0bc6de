package mutation

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy"
)

// CheckIdentity refuses a change of the fields by which an object is known.
func CheckIdentity(before, after map[string]any) error {
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		if !Same(valueOf(before, path), valueOf(after, path)) {
			return fmt.Errorf("it changes %s, by which the object is known", path[len(path)-1])
		}
	}
	return nil
}

func valueOf(value any, path []string) any {
	for _, key := range path {
		members, _ := value.(map[string]any)
		value = members[key]
	}
	return value
}

// Same reports whether two values of decoded JSON are equal. Parts that they share are not compared.
func Same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() {
			return true
		}
		for key, member := range a {
			if other, ok := b[key]; !ok || !Same(member, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		if len(a) > 0 && &a[0] == &b[0] {
			return true
		}
		for i := range a {
			if !Same(a[i], b[i]) {
				return false
			}
		}
		return true
	case string, float64, bool, nil:
		return a == b
	}
	return reflect.DeepEqual(a, b)
}

// KindOf returns the kind of a subject's object. A subresource may receive a body of another kind,
// as a Scale, which the object names.
func KindOf(s *policy.Subject) schema.GroupVersionKind {
	object := s.Object.Map()
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if s.Subresource != "" && apiVersion != "" && kind != "" {
		return schema.FromAPIVersionAndKind(apiVersion, kind)
	}
	return schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind}
}
