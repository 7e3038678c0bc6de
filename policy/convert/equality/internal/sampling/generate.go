package sampling

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/tree"
)

// Generator makes samples. The same facts, kinds and seed make the same ones.
type Generator struct {
	from   *rand.Rand
	kinds  []kind
	paths  []facts.Path
	values []any
	around []around // by path
	circumstances
	queue    []edit // the first samples: each path with each value
	corpus   [][]*Sample
	seen     map[string]bool
	lookups  []lookup
	looked   map[string][]place // the paths in the objects of a look-up, by its key
	world    []map[string]any
	variants []variant
	fits     map[[2]int]around // by kind and path: with the values that the type takes
}

// around are the values of a path.
type around struct {
	near   []any        // those of its expressions
	exact  []any        // those that its comparisons separate
	joined []facts.Path // with which it may be compared
	shape  facts.Shape
}

// circumstances are those of requests.
type circumstances struct {
	namespaces []string
	labels     []string // that a selector of namespaces may name
	users      []User
}

// place is a path with the values next to it.
type place struct {
	path  facts.Path
	near  []any
	shape facts.Shape
}

// edit is the change of one path of the base of a kind.
type edit struct{ kind, path, value int }

// maxCorpus bounds the samples that are varied, of one kind.
const maxCorpus = 300

// NewGenerator returns a generator of requests about objects of the kinds that targets match, from the paths and values
// of policies. Given samples are varied, too.
func NewGenerator(f *facts.Facts, targets []policy.Target, seed uint64, given []*Sample) *Generator {
	g := &Generator{from: rand.New(rand.NewPCG(seed, 0)), kinds: kindsOf(targets, homeOf(f)), seen: map[string]bool{}} //nolint:gosec // a repeatable choice
	g.values = append(f.Candidates(g.from), times(f.Values())...)
	for _, key := range slices.Sorted(maps.Keys(f.Paths)) {
		p := f.Paths[key]
		near := []any{facts.Absent{}}
		for _, key := range slices.Sorted(maps.Keys(f.Near[p.Key()])) {
			near = append(near, facts.Around(f.Near[p.Key()][key], g.from)...)
		}
		if strings.HasPrefix(p[0], facts.Of) {
			g.addLooked(p, near, f.ShapeOf(p))
			continue
		}
		if len(p) == 3 && p[1] == "labels" {
			g.labels = append(g.labels, p[2])
		}
		if p[len(p)-1] == "image" {
			near = append(near, images(f.Values())...)
		}
		if p[len(p)-1] == "creationTimestamp" {
			near = append(near, times(f.Values())...)
		}
		var exact []any
		for _, key := range slices.Sorted(maps.Keys(f.Exact[p.Key()])) {
			exact = append(exact, facts.Exactly(f.Exact[p.Key()][key], g.from)...)
		}
		g.paths, g.around = append(g.paths, p), append(g.around, around{near, exact, f.Related[p.Key()], f.ShapeOf(p)})
	}
	g.circumstancesOf(f)
	g.fill(given)
	g.lookups = lookupsOf(f.Lookups, homeOf(f))
	return g
}

// homeOf is the namespace of most objects.
func homeOf(f *facts.Facts) string { return cmp.Or(f.Home, "default") }

// circumstancesOf collects the namespaces and users of requests.
func (g *Generator) circumstancesOf(f *facts.Facts) {
	g.namespaces = slices.Compact([]string{homeOf(f), "default", "kube-system"})
	for _, pattern := range slices.Sorted(maps.Keys(f.Namespaces)) {
		g.namespaces = append(g.namespaces, slices.DeleteFunc(facts.Members(strings.TrimPrefix(pattern, "!")), func(n string) bool {
			return len(validation.IsDNS1123Label(n)) > 0
		})...)
	}
	g.users = []User{
		{"ann", []string{"system:authenticated"}}, {"admin", []string{"system:masters", "system:authenticated"}},
		{"system:serviceaccount:default:web", []string{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"}},
	}
	for _, pattern := range slices.Sorted(maps.Keys(f.Users)) {
		for _, name := range facts.Members(pattern) {
			g.users = append(g.users, User{name, []string{"system:authenticated"}}, User{"ann", []string{name}},
				User{"system:serviceaccount:default:" + name, []string{"system:serviceaccounts"}})
		}
	}
}

// fill queues each single change, and starts the samples that are varied.
func (g *Generator) fill(given []*Sample) {
	g.corpus = make([][]*Sample, len(g.kinds))
	for k := range g.kinds {
		base := &Sample{Operation: "CREATE", Object: g.kinds[k].base(), User: g.users[0], resource: g.kinds[k].resource, cluster: g.kinds[k].cluster}
		g.corpus[k] = []*Sample{base}
		if g.kinds[k].other {
			continue
		}
		for p := range g.paths {
			for v := range g.values {
				if g.kinds[k].custom && !g.around[p].shape.Takes(g.values[v]) {
					continue
				}
				g.queue = append(g.queue, edit{k, p, v})
			}
		}
	}
	for _, one := range given {
		if k := g.kindOf(one); k >= 0 && len(g.corpus[k]) < maxCorpus {
			g.corpus[k] = append(g.corpus[k], one)
		}
	}
	g.from.Shuffle(len(g.queue), func(i, j int) { g.queue[i], g.queue[j] = g.queue[j], g.queue[i] })
}

// kindOf returns the index of the kind of a sample; negative for none.
func (g *Generator) kindOf(s *Sample) int {
	root := s.Object
	if root == nil {
		root = s.Old
	}
	return slices.IndexFunc(g.kinds, func(k kind) bool { return k.name == root["kind"] && k.apiVersion() == root["apiVersion"] })
}

// Next makes a sample. While there are some, it is a single change of the least object, or of a sample that showed new
// behaviour; else one to three changes of such a sample, or an object with a value at most paths.
func (g *Generator) Next() (Sample, gate.Request) {
	for {
		s, k := g.draw()
		if g.from.IntN(2) == 0 {
			g.surround(&s, k)
		}
		g.align(&s)
		s.Existing = g.world
		request, err := s.Request()
		if err == nil {
			return s, request
		}
	}
}

func (g *Generator) draw() (s Sample, k int) {
	turn := g.from.IntN(12)
	switch n := len(g.variants); {
	case turn < 5 && n > 0:
		v := g.variants[n-1]
		g.variants = g.variants[:n-1]
		s = v.of.clone()
		g.vary(&s, v)
		return s, v.kind
	case turn < 7 && len(g.queue) > 0:
		e := g.queue[len(g.queue)-1]
		g.queue = g.queue[:len(g.queue)-1]
		s = g.corpus[e.kind][0].clone()
		g.change(&s, e.kind, e.path, g.values[e.value])
		return s, e.kind
	}
	k = g.from.IntN(len(g.kinds))
	if g.kinds[k].other && g.from.IntN(8) > 0 {
		k = g.from.IntN(len(g.kinds))
	}
	if pods := slices.IndexFunc(g.kinds, func(k kind) bool { return k.group == "" && k.name == "Pod" }); pods >= 0 && g.from.IntN(2) == 0 {
		k = pods // their controllers have the same rules
	}
	if turn >= 10 && len(g.paths) > 0 {
		return g.dense(k), k
	}
	s = g.corpus[k][g.from.IntN(len(g.corpus[k]))].clone()
	if turn > 7 {
		g.mix(&s, k)
		return s, k
	}
	for range g.from.IntN(4) {
		if len(g.paths) > 0 {
			p := g.from.IntN(len(g.paths))
			g.change(&s, k, p, g.valueOf(&s, k, p))
		}
	}
	return s, k
}

// dense has a value next to most paths: rules that require much are satisfied by it alone. Every other one has a single
// change more: of comparisons that are joined, each one decides only where the others hold.
func (g *Generator) dense(k int) Sample {
	s := g.corpus[k][0].clone()
	most := 1 + g.from.IntN(8)
	every := func(int) bool { return true }
	for p := range g.paths {
		if g.from.IntN(8) > most {
			continue
		}
		of := g.fitting(k, p)
		fit := of.near
		if len(of.exact) > 0 && g.from.IntN(4) > 0 {
			fit = of.exact
		}
		places := g.kinds[k].places(g.paths[p])
		if value := fit[g.from.IntN(len(fit))]; value != (facts.Absent{}) {
			tree.Set(s.Object, places[len(places)-1], value, every)
		}
	}
	complete(s.Object, &g.kinds[k])
	if len(g.paths) > 0 && g.from.IntN(2) == 0 {
		g.vary(&s, variant{kind: k, path: g.from.IntN(len(g.paths)), how: variation(g.from.IntN(int(variations)))})
	}
	return s
}

// change sets a value in the object, or in the old object.
func (g *Generator) change(s *Sample, k, p int, value any) {
	places := g.kinds[k].places(g.paths[p])
	at := places[g.from.IntN(len(places))]
	root := s.Object
	if root == nil || s.Old != nil && g.from.IntN(4) == 0 {
		root = s.Old
	}
	if g.from.IntN(8) == 0 {
		value = facts.Absent{}
	}
	if at[len(at)-1] != facts.Each && slices.Contains(at, facts.Each) && g.from.IntN(3) == 0 {
		g.lengthen(root, at)
	}
	if value == (facts.Absent{}) {
		g.bare(root, at)
	}
	only := g.from.IntN(3)
	tree.Set(root, at, value, func(i int) bool { return only == 2 || i == only })
	complete(root, &g.kinds[k])
}

// bare makes the list that a path leads through, if there is none: its element lacks the member.
func (g *Generator) bare(root map[string]any, at facts.Path) {
	each := slices.Index(at, facts.Each)
	if each < 0 || each == len(at)-1 || tree.First(root, at[:each]) != nil {
		return
	}
	element := map[string]any{}
	if g.from.IntN(2) == 0 {
		element["name"] = "v"
	}
	tree.Set(root, at[:each+1], element, func(int) bool { return true })
}

// complete restores the members of every object of a kind.
func complete(root map[string]any, of *kind) {
	meta, ok := root["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		root["metadata"] = meta
	}
	if name, _ := meta["name"].(string); name == "" {
		meta["name"] = "web"
	}
	root["apiVersion"], root["kind"] = of.apiVersion(), of.name
	if namespace, _ := meta["namespace"].(string); of.cluster {
		delete(meta, "namespace")
	} else if namespace == "" {
		meta["namespace"] = of.home
	}
	if at, ok := of.template(); ok {
		for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
			named(list[:1], tree.Get(root, at.With("spec", list)))
		}
	}
}

// Learn keeps a sample that showed a new behaviour.
func (g *Generator) Learn(s *Sample, behaviour ...string) {
	k := g.kindOf(s)
	if k < 0 || len(g.corpus[k]) >= maxCorpus {
		return
	}
	key := strings.Join(slices.Concat([]string{g.kinds[k].name, s.Operation}, behaviour), "\x00")
	if !g.seen[key] {
		g.seen[key] = true
		kept := s.clone()
		g.corpus[k] = append(g.corpus[k], &kept)
		for p := range g.paths {
			for how := range variations {
				if len(g.variants) < maxVariants && (how != mixed || slices.Contains(g.paths[p], facts.Each)) {
					g.variants = append(g.variants, variant{&kept, k, p, how})
				}
			}
		}
		g.from.Shuffle(len(g.variants), func(i, j int) { g.variants[i], g.variants[j] = g.variants[j], g.variants[i] })
	}
}
