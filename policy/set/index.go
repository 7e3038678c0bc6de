package set

import (
	"encoding/binary"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/requirements"
)

// listed is the number of rules up to which each rule is evaluated, so that a user sees why each
// one does not apply. In larger sets that list is too long to read, and an index finds the few
// rules that can apply.
const listed = 64

// gram is the number of bytes of a pattern that an index searches for.
const gram = 4

// ruleIn is a rule in its set.
type ruleIn struct {
	policy *policy.Policy
	rule   policy.Rule
}

// index finds the rules of a set that may match a subject: by its namespace and kind, then by the
// names of its images.
type index struct {
	members []ruleIn
	shards  map[shardKey]*shard // nil for a small set
}

// shardKey is a namespace and a kind; an empty one means any.
type shardKey struct{ namespace, kind string }

// shard are the rules about one kind, by the texts that their patterns contain.
type shard struct {
	always []int
	// grams are rules with one of the texts in each pattern. Only rare texts are indexed: a
	// pattern is filed once, under its rarest.
	grams map[uint32][]int
	// seen is a first look that most texts do not pass.
	seen [seenWords]uint64
}

const seenWords = 256

func newIndex(policies []*policy.Policy) *index {
	x := &index{}
	for _, last := range []bool{false, true} {
		for _, p := range policies {
			for _, r := range p.Rules {
				if requirements.Is(r) == last {
					x.members = append(x.members, ruleIn{policy: p, rule: r})
				}
			}
		}
	}
	if len(x.members) > listed {
		x.build()
	}
	return x
}

// build files every rule in each shard that it belongs to.
func (x *index) build() {
	filed := map[shardKey][]int{}
	for i, m := range x.members {
		for _, key := range m.keys() {
			if list := filed[key]; len(list) == 0 || list[len(list)-1] != i {
				filed[key] = append(list, i)
			}
		}
	}
	x.shards = make(map[shardKey]*shard, len(filed))
	for key, list := range filed {
		x.shards[key] = x.shard(list)
	}
}

// keys returns the shards of a rule. An uncertain rule goes into the shard for every subject.
func (m ruleIn) keys() []shardKey {
	selective, ok := m.rule.(policy.Selective)
	if !ok || len(selective.Targets()) == 0 {
		return []shardKey{{namespace: m.policy.Namespace}}
	}
	var keys []shardKey
	for _, t := range selective.Targets() {
		kind := t.Kind
		if wildcard.Contains(kind) {
			kind = ""
		}
		namespaces := []string{""}
		switch {
		case m.policy.Namespace != "":
			namespaces = []string{m.policy.Namespace}
		case len(t.Namespaces) > 0 && kind != "" && kind != "Namespace" && !slices.ContainsFunc(t.Namespaces, wildcard.Contains):
			namespaces = t.Namespaces
		}
		for _, namespace := range namespaces {
			keys = append(keys, shardKey{namespace: namespace, kind: kind})
		}
	}
	return keys
}

func (x *index) shard(list []int) *shard {
	s := &shard{grams: map[uint32][]int{}}
	frequency := map[uint32]int{}
	for _, i := range list {
		patterns, _ := patternsOf(x.members[i].rule)
		for _, p := range patterns {
			for _, g := range gramsOf(p) {
				frequency[g]++
			}
		}
	}
	for _, i := range list {
		patterns, known := patternsOf(x.members[i].rule)
		rarest, findable := make([]uint32, 0, len(patterns)), known
		for _, p := range patterns {
			grams := gramsOf(p)
			findable = findable && len(grams) > 0
			if !findable {
				break
			}
			rarest = append(rarest, slices.MinFunc(grams, func(a, b uint32) int { return frequency[a] - frequency[b] }))
		}
		if !findable {
			s.always = append(s.always, i)
			continue
		}
		for _, g := range rarest {
			s.grams[g] = append(s.grams[g], i)
			word, bit := seenAt(g)
			s.seen[word] |= bit
		}
	}
	return s
}

func patternsOf(r policy.Rule) ([]string, bool) {
	if selective, ok := r.(policy.Selective); ok {
		return selective.ImagePatterns()
	}
	return nil, false
}

// gramsOf returns the texts of a fixed length in a pattern that whatever it fits
// contains.
func gramsOf(pattern string) []uint32 {
	var grams []uint32
	for i := 0; i+gram <= len(pattern); i++ {
		if part := pattern[i : i+gram]; !wildcard.Contains(part) {
			grams = append(grams, gramAt(part))
		}
	}
	return grams
}

func gramAt(text string) uint32 { return binary.LittleEndian.Uint32([]byte(text[:gram])) }

// candidates returns the rules that may match the subject, in their order.
func (x *index) candidates(subject *policy.Subject, standard func() ([]policy.Image, error)) []ruleIn {
	if subject.Bare && subject.Namespace == "" { // it may be in any
		return x.members
	}
	if x.shards == nil {
		return x.inNamespace(subject.Home())
	}
	texts, unknown := textsOf(standard)
	var found []int
	for _, namespace := range slices.Compact([]string{"", subject.Home()}) {
		for _, kind := range slices.Compact([]string{"", subject.Kind}) {
			if s := x.shards[shardKey{namespace: namespace, kind: kind}]; s != nil {
				found = s.find(found, texts, unknown)
			}
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	members := make([]ruleIn, len(found))
	for i, n := range found {
		members[i] = x.members[n]
	}
	return members
}

func (x *index) inNamespace(namespace string) []ruleIn {
	return slices.DeleteFunc(slices.Clone(x.members), func(m ruleIn) bool { return m.policy.Namespace != "" && m.policy.Namespace != namespace })
}

// textsOf returns the names of the images, each once. unknown means that they cannot be read.
func textsOf(standard func() ([]policy.Image, error)) (texts []string, unknown bool) {
	images, err := standard()
	if err != nil {
		return nil, true
	}
	for n, i := range images {
		// Unchanged images count too: a rule that matches one is still listed in the results.
		if !slices.ContainsFunc(images[:n], func(earlier policy.Image) bool { return earlier.Ref == i.Ref }) {
			texts = append(texts, reference.Texts(i.Ref)...)
		}
	}
	return texts, false
}

func (s *shard) find(found []int, texts []string, unknown bool) []int {
	found = append(found, s.always...)
	if unknown {
		for _, list := range s.grams {
			found = append(found, list...)
		}
		return found
	}
	if len(s.grams) == 0 {
		return found
	}
	for _, text := range texts {
		for i := 0; i+gram <= len(text); i++ {
			g := gramAt(text[i:])
			if word, bit := seenAt(g); s.seen[word]&bit != 0 {
				found = append(found, s.grams[g]...)
			}
		}
	}
	return found
}

// seenAt returns the place of a text in seen.
func seenAt(g uint32) (word uint32, bit uint64) {
	h := g * 0x9E3779B1 >> 18 // 14 bits, as many as seen has
	return h >> 6, 1 << (h & 63)
}
