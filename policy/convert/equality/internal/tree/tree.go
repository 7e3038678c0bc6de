package tree

import "github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"

// Get returns the value at a path of members; nil for none.
func Get(tree any, at facts.Path) any {
	for _, name := range at {
		m, ok := tree.(map[string]any)
		if !ok {
			return nil
		}
		tree = m[name]
	}
	return tree
}

// First is the value at a path, in the first elements of lists.
func First(tree any, at facts.Path) any {
	for _, name := range at {
		switch node := tree.(type) {
		case map[string]any:
			tree = node[name]
		case []any:
			if len(node) == 0 {
				return nil
			}
			tree = node[0]
		default:
			return nil
		}
	}
	return tree
}

// Copy returns decoded JSON that shares nothing with the original.
func Copy(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, one := range value {
			out[key] = Copy(one)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, one := range value {
			out[i] = Copy(one)
		}
		return out
	}
	return value
}

// CopyObject returns a copy of an object; nil of none.
func CopyObject(o map[string]any) map[string]any {
	if o == nil {
		return nil
	}
	out, _ := Copy(o).(map[string]any)
	return out
}

// Set sets the value at a path in a tree, and returns the tree. Of a list, which selects elements: those of which
// it is true, or all of them; a missing list is made with one element.
func Set(tree any, at facts.Path, value any, element func(i int) bool) any {
	if len(at) == 0 {
		return Copy(value)
	}
	if at[0] == facts.Each {
		list, ok := tree.([]any)
		if value == (facts.Absent{}) && len(at) == 1 { // without the elements
			left := []any{}
			for i := range list {
				if len(list) > 1 && !element(i) {
					left = append(left, list[i])
				}
			}
			return left
		}
		if !ok || len(list) == 0 {
			list = []any{nil}
		}
		for i := range list {
			if len(list) == 1 || element(i) {
				list[i] = Set(list[i], at[1:], value, element)
			}
		}
		return list
	}
	m, ok := tree.(map[string]any)
	_, isAbsent := value.(facts.Absent)
	if !ok {
		if isAbsent {
			return tree
		}
		m = map[string]any{}
	}
	if isAbsent && len(at) == 1 {
		delete(m, at[0])
		return m
	}
	if _, has := m[at[0]]; isAbsent && !has {
		return m
	}
	m[at[0]] = Set(m[at[0]], at[1:], value, element)
	return m
}

// Double doubles the element of the list at a path, in each element of the lists before it.
func Double(tree any, at facts.Path) {
	for i, name := range at {
		if list, ok := tree.([]any); ok && name == facts.Each {
			for _, one := range list {
				Double(one, at[i+1:])
			}
			return
		}
		m, ok := tree.(map[string]any)
		if !ok {
			return
		}
		if i < len(at)-1 {
			tree = m[name]
			continue
		}
		list, ok := m[name].([]any)
		if !ok || len(list) != 1 {
			return
		}
		second := Copy(list[0])
		if element, ok := second.(map[string]any); ok {
			if name, ok := element["name"].(string); ok {
				element["name"] = name + "2"
			}
		}
		m[name] = []any{list[0], second}
	}
}
