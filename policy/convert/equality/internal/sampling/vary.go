package sampling

import (
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"
)

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

// mix adds the elements of a list in another sample to the list of a sample: where one passes and the other does not, the
// result shows whether a policy wants it of each element or of one.
func (g *Generator) mix(s *Sample, k int) {
	other := g.corpus[k][g.from.IntN(len(g.corpus[k]))]
	tree, more := s.Object, other.Object
	if tree == nil {
		tree = s.Old
	}
	if more == nil {
		more = other.Old
	}
	lists := slices.DeleteFunc(slices.Clone(g.paths), func(p facts.Path) bool { return !slices.Contains(p, facts.Each) })
	if len(lists) == 0 {
		return
	}
	places := g.kinds[k].places(lists[g.from.IntN(len(lists))])
	at := places[len(places)-1]
	for i := len(at) - 1; i >= 0; i-- {
		own, _ := first(tree, at[:i]).([]any)
		added, _ := first(more, at[:i]).([]any)
		if at[i] != facts.Each || len(own) == 0 || len(added) == 0 || len(own)+len(added) > maxMixed || g.from.IntN(2) == 0 {
			continue
		}
		both := slices.Clone(own)
		for _, one := range added {
			one = copied(one)
			if element, ok := one.(map[string]any); ok {
				if name, ok := element["name"].(string); ok {
					element["name"] = name + strconv.Itoa(len(both)+1)
				}
			}
			both = append(both, one)
		}
		if g.from.IntN(2) == 0 {
			slices.Reverse(both)
		}
		set(tree, at[:i], both, func(i int) bool { return i == 0 })
		return
	}
}

// maxMixed bounds the elements of a list of two samples.
const maxMixed = 4

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
