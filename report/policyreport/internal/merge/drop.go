package merge

import (
	"maps"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// Staying are results that Drop does not remove, since they were not evaluated: those of whole
// policies, and those of rules.
type Staying struct {
	Policies []result.Policy
	Rules    []result.Rule
}

// Drop removes the results of a bounded object that results does not repeat and that are not
// newer than a time; a zero time removes all of them. Those that were not evaluated stay.
func (c *Content) Drop(of report.Resource, at time.Time, results []result.Result, staying Staying) bool {
	stays := namesOf(staying.Policies)
	stays.add(staying.Rules)
	who := Identity(of)
	if !c.Pods && c.scope.is(of) {
		who = ""
	}
	restated := map[line]bool{}
	tokens := map[Token]bool{}
	for _, each := range results {
		l := lineOf(each)
		restated[l], tokens[tokenOf(l, who)] = true, true
	}
	changed := c.dropFormer(of, at, results, func(l line) bool { return restated[l] || stays.rules[l] })
	for l, s := range c.lines {
		before, there := s.of(who)
		if !there || restated[l] || stays.line(l) || !at.IsZero() && before.Time.After(at) {
			continue
		}
		s.remove(who)
		c.lines.tidy(l)
		changed = true
	}
	known := ""
	if who != "" {
		known = code(who, whoLength)
	}
	return c.dropTokens(func(t Token, _ result.Status) bool { return t.who == known && !tokens[t] && !stays.token(t) }) || changed
}

// dropFormer removes shared results of rules that a policy no longer has. They predate the change
// of the policy, and its current results differ.
func (c *Content) dropFormer(of report.Resource, at time.Time, results []result.Result, stays func(line) bool) bool {
	if !c.shares() || !c.scope.hasPod(result.Result{Resource: of}) {
		return false
	}
	hashes := map[string]string{}
	for _, each := range results {
		hashes[each.Policy.Kind+"/"+each.Policy.String()] = each.Policy.Hash
	}
	changed := false
	for l, s := range c.lines {
		hash, isKnown := hashes[l.kind+"/"+l.policy]
		if s.shared == nil || !isKnown || stays(l) || s.shared.Policy.Hash == hash || s.shared.Time.After(at) {
			continue
		}
		s.shared, changed = nil, true
		c.lines.tidy(l)
	}
	return changed
}

// of returns the result of a listed object, or for an empty argument the shared one.
func (s *entry) of(who string) (result.Result, bool) {
	if who != "" {
		w, ok := s.listed[who]
		return w, ok
	}
	if s.shared == nil {
		return result.Result{}, false
	}
	return *s.shared, true
}

// Keep removes results of policies that are not in the list, and reports whether there were any.
func (c *Content) Keep(policies []result.Policy) bool {
	there := namesOf(policies)
	changed := false
	for l := range c.lines {
		if !there.line(l) {
			delete(c.lines, l)
			changed = true
		}
	}
	return c.dropTokens(func(t Token, _ result.Status) bool { return !there.token(t) }) || changed
}

// policyNames are policies by kind and name, and by the hashes of both in tokens, and rules by line
// and by token.
type policyNames struct {
	names, codes map[string]bool
	rules        map[line]bool
	tokens       map[Token]bool
}

func namesOf(policies []result.Policy) policyNames {
	n := policyNames{names: map[string]bool{}, codes: map[string]bool{}}
	for _, p := range policies {
		l := lineOf(result.Result{Policy: p})
		n.names[l.kind+"/"+l.policy], n.codes[tokenOf(l, "").policy] = true, true
	}
	return n
}

// add adds the results of rules about the object itself: they have no container.
func (n *policyNames) add(rules []result.Rule) {
	n.rules, n.tokens = map[line]bool{}, map[Token]bool{}
	for _, r := range rules {
		l := lineOf(result.Result{Policy: r.Policy, Rule: r.Rule})
		n.rules[l], n.tokens[tokenOf(l, "")] = true, true
	}
}

func (n policyNames) line(l line) bool { return n.names[l.kind+"/"+l.policy] || n.rules[l] }

func (n policyNames) token(t Token) bool {
	return n.codes[t.policy] || n.tokens[Token{policy: t.policy, rule: t.rule}]
}

// Resources returns the objects that are listed by name, in no order.
func (c *Content) Resources() []report.Resource {
	listed := map[string]report.Resource{}
	for _, s := range c.lines {
		for who, w := range s.listed {
			listed[who] = w.Resource
		}
	}
	return slices.Collect(maps.Values(listed))
}

// sorted returns the listed results in the order of their objects.
func sorted(listed map[string]result.Result) []result.Result {
	results := make([]result.Result, 0, len(listed))
	for _, who := range slices.Sorted(maps.Keys(listed)) {
		results = append(results, listed[who])
	}
	return results
}
