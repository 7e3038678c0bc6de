package tree

import (
	"maps"
	"slices"
)

// Step is a key of a map, or an index of a list.
type Step struct {
	key   string
	index int // -1 for a key
}

// Places returns the places of a tree, the outer ones first.
func Places(tree any, at []Step) (all [][]Step) {
	var inner [][]Step
	switch tree := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			if len(at) == 0 && (key == "apiVersion" || key == "kind") || len(at) == 1 && at[0].key == "metadata" && (key == "name" || key == "namespace") {
				continue
			}
			place := append(slices.Clip(slices.Clone(at)), Step{key, -1})
			all, inner = append(all, place), append(inner, Places(tree[key], place)...)
		}
	case []any:
		for i := len(tree) - 1; i >= 0; i-- {
			place := append(slices.Clip(slices.Clone(at)), Step{"", i})
			all, inner = append(all, place), append(inner, Places(tree[i], place)...)
		}
	}
	return append(all, inner...)
}

// Remove takes a place out of a tree; false if it is not there.
func Remove(tree any, at []Step) bool {
	if len(at) == 0 {
		return false
	}
	last := at[len(at)-1]
	parent := at[:len(at)-1]
	if last.index >= 0 { // the list is a new one in its own parent
		if len(parent) == 0 || parent[len(parent)-1].index >= 0 {
			return false
		}
		holder, ok := walk(tree, parent[:len(parent)-1]).(map[string]any)
		if !ok {
			return false
		}
		key := parent[len(parent)-1].key
		list, ok := holder[key].([]any)
		if !ok || last.index >= len(list) {
			return false
		}
		holder[key] = slices.Delete(slices.Clone(list), last.index, last.index+1)
		return true
	}
	m, ok := walk(tree, parent).(map[string]any)
	if !ok {
		return false
	}
	_, has := m[last.key]
	delete(m, last.key)
	return has
}

func walk(tree any, at []Step) any {
	for _, s := range at {
		switch node := tree.(type) {
		case map[string]any:
			tree = node[s.key]
		case []any:
			if s.index < 0 || s.index >= len(node) {
				return nil
			}
			tree = node[s.index]
		default:
			return nil
		}
	}
	return tree
}
