package sampling

import "github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"

// variant is a single change of a sample that showed new behaviour.
type variant struct {
	of         *Sample
	kind, path int
	how        variation
}

type variation int

const (
	dropped  variation = iota // without the value
	replaced                  // with one next to it
	mixed                     // in one element of a longer list
	variations
)

// maxVariants bounds the changes that wait: later ones are of samples that are like earlier ones.
const maxVariants = 20_000

// vary makes a change of a sample.
func (g *Generator) vary(s *Sample, v variant) {
	tree := s.Object
	if tree == nil {
		tree = s.Old
	}
	places := g.kinds[v.kind].places(g.paths[v.path])
	at := places[len(places)-1]
	value := any(facts.Absent{})
	if v.how != dropped && g.from.IntN(4) > 0 {
		value = g.valueOf(s, v.kind, v.path)
	}
	every := func(int) bool { return true }
	if v.how == mixed {
		g.lengthen(tree, at)
		only := g.from.IntN(2)
		every = func(i int) bool { return i == only }
	}
	set(tree, at, value, every)
	complete(tree, &g.kinds[v.kind])
}

// lengthen doubles the element of a list on a path.
func (g *Generator) lengthen(tree map[string]any, at facts.Path) {
	var lists []int
	for i, name := range at {
		if name == facts.Each {
			lists = append(lists, i)
		}
	}
	if len(lists) == 0 {
		return
	}
	to := lists[g.from.IntN(len(lists))]
	double(tree, at[:to])
}

// double doubles the element of the list at a path, in each element of the lists before it.
func double(tree any, at facts.Path) {
	for i, name := range at {
		if list, ok := tree.([]any); ok && name == facts.Each {
			for _, one := range list {
				double(one, at[i+1:])
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
		second := copied(list[0])
		if element, ok := second.(map[string]any); ok {
			if name, ok := element["name"].(string); ok {
				element["name"] = name + "2"
			}
		}
		m[name] = []any{list[0], second}
	}
}
