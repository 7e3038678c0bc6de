package differential

import (
	"fmt"
	"slices"
	"testing"
)

// comesOfOne plays each of several changes by itself, and reports whether that explains
// the difference with one of them.
func (s *scene) comesOfOne(p *played, who string) bool {
	recipes := s.apart()
	if len(recipes) < 2 {
		return false
	}
	var alone []*played
	for i, r := range recipes {
		other := newScene(s.t, s.crowd, fmt.Sprintf("%s-apart-%s-%d", s.name, who, i), r)
		alone = append(alone, other.ask(other.play()))
		other.forget()
	}
	return explainedApart(p, alone, who)
}

// explainedApart: a refusal of ours is explained if one change alone causes it, and a
// row gives the reason; an acceptance of ours if we accept each alone, and so does the other
// one, or a row gives the reason.
func explainedApart(p *played, alone []*played, who string) bool {
	differs := func(q *played) bool { return q.mine.Accepted != q.theirs[who].Accepted }
	if !p.mine.Accepted {
		return slices.ContainsFunc(alone, func(q *played) bool {
			return !q.mine.Accepted && differs(q) && explained(q, who) != nil
		})
	}
	return !slices.ContainsFunc(alone, func(q *played) bool {
		return !q.mine.Accepted || differs(q) && explained(q, who) == nil
	})
}

// apart is the case with each of its changes alone, at the places where they were made.
func (s *scene) apart() []*recipe {
	var all []*recipe
	for _, list := range []func(*recipe) *[]change{
		func(r *recipe) *[]change { return &r.Oddities },
		func(r *recipe) *[]change { return &r.Damages },
		func(r *recipe) *[]change { return &r.Bent },
	} {
		for i, c := range *list(s.recipe) {
			if i >= len(s.did) || s.did[i] == "" { // it came to nothing
				continue
			}
			r, t := *s.recipe, asTouch(s.did[i])
			*list(&r) = []change{{What: t.what, Where: t.where, At: c.At}}
			all = append(all, &r)
		}
	}
	return all
}

// TestApart holds that several changes hide no difference of one of them.
func TestApart(t *testing.T) {
	yes, no := answer{Accepted: true}, answer{Said: "no valid bundles exist in registry"}
	wrongType := answer{Said: "an attestation", codes: []string{"unsigned"}}
	saying := func(did string, mine, theirs answer) *played {
		return &played{recipe: &recipe{Format: bundles, Bent: []change{{}}}, did: []string{did}, mine: mine, theirs: map[string]answer{cosign2: theirs}}
	}
	harmless, brokenConfig := saying("null at layers.0", yes, yes), saying("null at config", yes, no)
	otherType, brokenLayer := saying("null at artifactType", wrongType, yes), saying("null at layers.0", yes, no)
	for _, row := range []struct {
		reason string
		whole  *played
		alone  []*played
		want   bool
	}{
		{"a row explains one, the other is accepted by all", brokenConfig, []*played{brokenConfig, harmless}, true},
		{"no row explains the second", brokenConfig, []*played{brokenConfig, brokenLayer}, false},
		{"what all refuse alone we accept together", brokenConfig, []*played{brokenConfig, saying("null at layers.0", no, no)}, false},
		{"a row explains our refusal of one", otherType, []*played{harmless, otherType}, true},
		{"we refuse neither alone", otherType, []*played{harmless, brokenConfig}, false},
	} {
		if got := explainedApart(row.whole, row.alone, cosign2); got != row.want {
			t.Errorf("%s: %t, want %t", row.reason, got, row.want)
		}
	}
	s := &scene{recipe: &recipe{Damages: []change{{At: 1}, {At: 2}, {At: 3}}}, did: []string{"body > null at payload", "", "predicateType > bit"}}
	var got []change
	for _, r := range s.apart() {
		got = append(got, r.Damages...)
	}
	if want := []change{{"null", "body > payload", 1}, {"bit", "predicateType", 3}}; !slices.Equal(got, want) {
		t.Errorf("the changes alone are %v, want %v", got, want)
	}
}
