package sampling

import (
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/tree"
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
	root := s.Object
	if root == nil {
		root = s.Old
	}
	places := g.kinds[v.kind].places(g.paths[v.path])
	at := places[len(places)-1]
	value := any(facts.Absent{})
	if v.how != dropped && g.from.IntN(4) > 0 {
		value = g.valueOf(s, v.kind, v.path)
	}
	every := func(int) bool { return true }
	if v.how == mixed {
		g.lengthen(root, at)
		only := g.from.IntN(2)
		every = func(i int) bool { return i == only }
	}
	tree.Set(root, at, value, every)
	complete(root, &g.kinds[v.kind])
}

// mix adds the elements of a list in another sample to the list of a sample: where one passes and the other does not, the
// result shows whether a policy wants it of each element or of one.
func (g *Generator) mix(s *Sample, k int) {
	other := g.corpus[k][g.from.IntN(len(g.corpus[k]))]
	root, more := s.Object, other.Object
	if root == nil {
		root = s.Old
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
		own, _ := tree.First(root, at[:i]).([]any)
		added, _ := tree.First(more, at[:i]).([]any)
		if at[i] != facts.Each || len(own) == 0 || len(added) == 0 || len(own)+len(added) > maxMixed || g.from.IntN(2) == 0 {
			continue
		}
		both := slices.Clone(own)
		for _, one := range added {
			one = tree.Copy(one)
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
		tree.Set(root, at[:i], both, func(i int) bool { return i == 0 })
		return
	}
}

// maxMixed bounds the elements of a list of two samples.
const maxMixed = 4

// lengthen doubles the element of a list on a path.
func (g *Generator) lengthen(root map[string]any, at facts.Path) {
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
	tree.Double(root, at[:to])
}
