package sampling

import (
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/tree"
)

// surround draws the operation, the namespace, and the user.
func (g *Generator) surround(s *Sample, k int) {
	of := &g.kinds[k]
	operations := append([]string{"CREATE", "CREATE", "CREATE", "UPDATE", "DELETE"}, of.operations...)
	operation := operations[g.from.IntN(len(operations))]
	if g.from.IntN(2) == 0 || operation == "CONNECT" {
		operation = s.Operation
	}
	now, old := s.Object, s.Old
	if now == nil {
		now = old
	}
	if old == nil {
		other := g.corpus[k][g.from.IntN(len(g.corpus[k]))]
		old = tree.CopyObject(other.Object)
		if old == nil {
			old = tree.CopyObject(other.Old)
		}
		if old == nil || g.from.IntN(3) == 0 {
			old = tree.CopyObject(now)
		}
	}
	s.Operation = operation
	switch operation {
	case "DELETE":
		s.Object, s.Old = nil, now
	case "UPDATE":
		s.Object, s.Old = now, old
		if len(g.paths) > 0 && g.from.IntN(2) == 0 {
			before := Sample{Object: old}
			g.vary(&before, variant{kind: k, path: g.from.IntN(len(g.paths)), how: variation(g.from.IntN(int(variations)))})
		}
	default:
		s.Object, s.Old = now, nil
	}
	if g.from.IntN(4) == 0 {
		s.User = g.users[g.from.IntN(len(g.users))]
	}
	s.Subresource = ""
	if n := len(of.subresources); n > 0 && g.from.IntN(3) == 0 {
		s.Subresource = of.subresources[g.from.IntN(n)]
	}
	if g.from.IntN(4) == 0 && !of.cluster {
		namespace := g.namespaces[g.from.IntN(len(g.namespaces))]
		for _, root := range []map[string]any{s.Object, s.Old} {
			if root != nil {
				tree.Set(root, facts.Path{"metadata", "namespace"}, namespace, nil)
			}
		}
	}
	if len(g.labels) > 0 && g.from.IntN(4) == 0 {
		text, _ := g.values[g.from.IntN(len(g.values))].(string)
		s.NamespaceLabels = map[string]string{g.labels[g.from.IntN(len(g.labels))]: text}
	}
}

// align gives both states of an object one name and namespace, as an API server does.
func (g *Generator) align(s *Sample) {
	if s.Object == nil || s.Old == nil {
		return
	}
	for _, name := range []string{"name", "namespace"} {
		at := facts.Path{"metadata", name}
		if value := tree.Get(s.Object, at); value != nil {
			tree.Set(s.Old, at, value, nil)
		} else {
			tree.Set(s.Old, at, facts.Absent{}, nil)
		}
	}
}
