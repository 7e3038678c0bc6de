package mutation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	fields "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// merger merges a configuration into an object with the results of the library (structured-merge-diff), which copies the
// whole object: the merger copies the parts that the configuration names. It leaves the rest to the library: invalid
// objects, null in a configuration, and lists in which two elements have the same keys.
type merger struct{ known *fields.Schema }

// mergeObject returns the merged object; false if the library has to merge it. The configuration is valid.
func mergeObject(of rules, about Target, configuration map[string]any) (map[string]any, bool) {
	version, _ := about.Object["apiVersion"].(string)
	kind, _ := about.Object["kind"].(string)
	m := merger{of.known}
	if schema.FromAPIVersionAndKind(version, kind) != about.Kind || !m.fits(of.ref, about.Object, false) {
		return nil, false
	}
	merged, ok := m.merge(of.ref, about.Object, configuration)
	object, isObject := merged.(map[string]any)
	return object, ok && isObject
}

// merge merges a part of a configuration into the same part of an object, nil for none.
func (m merger) merge(of fields.TypeRef, live, patch any) (any, bool) {
	atom, ok := m.known.Resolve(of)
	if !ok {
		return nil, false
	}
	switch patch := patch.(type) {
	case nil:
		return nil, false
	case map[string]any:
		if atom.Map == nil {
			return nil, false
		}
		return m.mergeMap(atom.Map, live, patch)
	case []any:
		own, isList := live.([]any)
		switch {
		case atom.List == nil || live != nil && !isList:
			return nil, false
		case atom.List.ElementRelationship == fields.Atomic || len(own) == 0:
			return patch, true
		case len(patch) == 0:
			return live, true
		}
		return m.mergeList(atom.List, own, patch)
	}
	return patch, atom.Scalar != nil
}

func (m merger) mergeMap(atom *fields.Map, live any, patch map[string]any) (any, bool) {
	own, isMap := live.(map[string]any)
	switch {
	case live != nil && !isMap:
		return nil, false
	case atom.ElementRelationship == fields.Atomic || len(own) == 0:
		return patch, true
	}
	out := maps.Clone(own)
	for key, change := range patch {
		next := atom.ElementType
		if field, ok := atom.FindField(key); ok {
			next = field.Type
		}
		merged, ok := m.merge(next, own[key], change)
		if !ok {
			return nil, false
		}
		out[key] = merged
	}
	return out, true
}

// fits reports whether a value is surely of a type. The library decides about others, and finds the words. The elements of
// a list are distinct by their keys, for configurations.
func (m merger) fits(of fields.TypeRef, v any, distinct bool) bool {
	if v == nil {
		return true
	}
	atom, ok := m.known.Resolve(of)
	if !ok {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		if atom.Map == nil {
			return false
		}
		for key, member := range v {
			next := atom.Map.ElementType
			if field, ok := atom.FindField(key); ok {
				next = field.Type
			} else if next == (fields.TypeRef{}) {
				return false
			}
			if !m.fits(next, member, distinct) {
				return false
			}
		}
		return true
	case []any:
		return atom.List != nil && m.allFit(atom.List, v, distinct)
	}
	return atom.Scalar != nil && isScalar(*atom.Scalar, v)
}

func (m merger) allFit(atom *fields.List, list []any, distinct bool) bool {
	for _, element := range list {
		if atom.ElementRelationship == fields.Associative && !hasKeys(atom.Keys, element) || !m.fits(atom.ElementType, element, distinct) {
			return false
		}
	}
	if !distinct || atom.ElementRelationship != fields.Associative || len(list) < 2 {
		return true
	}
	_, _, ok := m.identities(atom, list)
	return ok
}

// hasKeys reports whether an element of a list has a key, as the library wants, or is a plain value where there are none.
func hasKeys(keys []string, element any) bool {
	members, isMap := element.(map[string]any)
	_, isList := element.([]any)
	if len(keys) == 0 || !isMap {
		return len(keys) == 0 && !isMap && !isList && element != nil
	}
	return slices.ContainsFunc(keys, func(key string) bool { return members[key] != nil })
}

func isScalar(of fields.Scalar, v any) bool {
	switch v.(type) {
	case string:
		return of == fields.String || of == fields.Untyped
	case bool:
		return of == fields.Boolean || of == fields.Untyped
	case int64, float64:
		return of == fields.Numeric || of == fields.Untyped
	}
	return false
}
