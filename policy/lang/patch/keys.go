package patch

import "github.com/quaymaster/quaymaster/policy/lang/patch/internal/mergekey"

// ListRule is how a strategic merge treats a list.
type ListRule struct {
	// Keys are the members that identify its elements; none for a list that is replaced.
	Keys []string
	// Set: it is a set of strings.
	Set bool
}

// ListOf returns the rule for the list at a path of members in objects of a kind; elements of lists have
// no step of their own, as in spec, containers, ports.
func ListOf(apiVersion, kind string, path ...string) ListRule {
	field := mergekey.Field{Shape: mergekey.Of(map[string]any{"apiVersion": apiVersion, "kind": kind})}
	for _, name := range path {
		field = field.Shape[name]
	}
	return ListRule{Keys: field.Keys, Set: field.Set}
}
