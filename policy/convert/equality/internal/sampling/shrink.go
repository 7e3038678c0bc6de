package sampling

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/tree"
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
			for _, at := range tree.Places(of(&s), nil) {
				smaller = try(func(n *Sample) bool { return tree.Remove(of(n), at) }) || smaller
			}
		}
	}
	return s
}
