package mutation

import (
	fields "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// maxKeys is the number of keys of the elements of a list that are compared. Lists of Kubernetes have at most three.
const maxKeys = 3

// identity has the values of the keys of an element, in their order, or the element itself in a set.
type identity [maxKeys]any

// absent is the value of a key that an element does not have, and that has no default.
type absent struct{}

// mergeList merges a list of elements with keys, or a set, in the order of the library: that of the configuration, with
// the other elements of the object as far as possible where they are.
func (m merger) mergeList(atom *fields.List, own, patch []any) (any, bool) {
	ownKeys, at, ok := m.identities(atom, own)
	if !ok {
		return nil, false
	}
	keys, in, ok := m.identities(atom, patch)
	if !ok {
		return nil, false
	}
	out := make([]any, 0, max(len(own), len(patch)))
	for l, r, shared := 0, 0, 0; l < len(own) || r < len(patch); {
		for shared < len(patch) && (shared < r || !has(at, keys[shared])) {
			shared++ // to the next element of the configuration that the object has
		}
		if l < len(own) {
			turn, isChanged := in[ownKeys[l]]
			switch {
			case !isChanged:
				out = append(out, own[l])
				l++
				continue
			case turn != r && r < len(patch) && shared < len(patch) && turn != shared:
				l++ // its turn is over, or comes later
				continue
			case turn <= r:
				l++
			}
		}
		if r < len(patch) {
			var live any
			if i, ok := at[keys[r]]; ok {
				live = own[i]
			}
			merged, ok := m.merge(atom.ElementType, live, patch[r])
			if !ok {
				return nil, false
			}
			out = append(out, merged)
			r++
		}
	}
	return out, true
}

func has(at map[identity]int, key identity) bool {
	_, ok := at[key]
	return ok
}

// identities returns the keys of the elements of a list, and their indices; false if two have the same ones, or the library
// has to compare them.
func (m merger) identities(atom *fields.List, list []any) ([]identity, map[identity]int, bool) {
	if len(atom.Keys) > maxKeys {
		return nil, nil, false
	}
	keys, at := make([]identity, len(list)), make(map[identity]int, len(list))
	for i, element := range list {
		key, ok := m.identify(atom, element)
		if !ok || has(at, key) {
			return nil, nil, false
		}
		keys[i], at[key] = key, i
	}
	return keys, at, true
}

func (m merger) identify(atom *fields.List, element any) (key identity, ok bool) {
	if len(atom.Keys) == 0 {
		key[0] = element
		return key, isPlain(element)
	}
	members, ok := element.(map[string]any)
	if !ok {
		return key, false
	}
	for i, name := range atom.Keys {
		value, ok := members[name]
		if !ok {
			value = m.usual(atom, name)
		} else if !isPlain(value) {
			return key, false
		}
		key[i] = value
	}
	return key, true
}

// usual is the default of a key.
func (m merger) usual(atom *fields.List, key string) any {
	element, ok := m.known.Resolve(atom.ElementType)
	if !ok || element.Map == nil {
		return absent{}
	}
	field, _ := element.FindField(key)
	if field.Default == nil {
		return absent{}
	}
	return field.Default
}

// isPlain reports whether a value can be compared with ==.
func isPlain(value any) bool {
	switch value.(type) {
	case string, bool, float64:
		return true
	}
	return false
}
