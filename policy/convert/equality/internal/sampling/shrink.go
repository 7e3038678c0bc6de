package sampling

import (
	"maps"
	"slices"
)

// maxShrink bounds the evaluations that make one object smaller.
const maxShrink = 3000

// Shrink returns the smallest sample that still satisfies a condition: it takes parts away, until
// nothing can.
func Shrink(s Sample, holds func(*Sample) bool) Sample {
	left := maxShrink
	try := func(change func(*Sample) bool) bool {
		if left == 0 {
			return false
		}
		next := s.clone()
		next.exists = false // a smaller one is made up
		if !change(&next) {
			return false
		}
		left--
		if !holds(&next) {
			return false
		}
		s = next
		return true
	}
	for smaller := true; smaller; {
		smaller = try(func(n *Sample) bool {
			n.Operation, n.Old = "CREATE", nil
			return s.Operation == "UPDATE" && s.Object != nil
		})
		smaller = try(func(n *Sample) bool { n.NamespaceLabels = nil; return s.NamespaceLabels != nil }) || smaller
		smaller = try(func(n *Sample) bool {
			n.User = user()
			return s.User.Name != "ann" || len(s.User.Groups) != 1 || s.User.Groups[0] != "system:authenticated"
		}) || smaller
		smaller = try(func(n *Sample) bool { n.Subresource = ""; return s.Subresource != "" }) || smaller
		for i := len(s.Existing) - 1; i >= 0; i-- {
			smaller = try(func(n *Sample) bool { n.Existing = slices.Delete(n.Existing, i, i+1); return true }) || smaller
		}
		trees := []func(*Sample) map[string]any{
			func(n *Sample) map[string]any { return n.Object }, func(n *Sample) map[string]any { return n.Old },
		}
		for i := range s.Existing {
			trees = append(trees, func(n *Sample) map[string]any { return n.Existing[i] })
		}
		for _, of := range trees {
			for _, at := range parts(of(&s), nil) {
				smaller = try(func(n *Sample) bool { return remove(of(n), at) }) || smaller
			}
		}
	}
	return s
}

// step is a key of a map, or an index of a list.
type step struct {
	key   string
	index int // -1 for a key
}

// parts returns the places of a tree, the outer ones first.
func parts(tree any, at []step) (all [][]step) {
	var inner [][]step
	switch tree := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			if len(at) == 0 && (key == "apiVersion" || key == "kind") || len(at) == 1 && at[0].key == "metadata" && (key == "name" || key == "namespace") {
				continue
			}
			place := append(slices.Clip(slices.Clone(at)), step{key, -1})
			all, inner = append(all, place), append(inner, parts(tree[key], place)...)
		}
	case []any:
		for i := len(tree) - 1; i >= 0; i-- {
			place := append(slices.Clip(slices.Clone(at)), step{"", i})
			all, inner = append(all, place), append(inner, parts(tree[i], place)...)
		}
	}
	return append(all, inner...)
}

// remove takes a place out of a tree; false if it is not there.
func remove(tree any, at []step) bool {
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

func walk(tree any, at []step) any {
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
