package merge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// maxRounds bounds the passes over results that arrive together: when the last of them replaces a
// shared result, others differ from it.
const maxRounds = 4

// Merge merges bounded results, and reports whether the visible content changed.
func (c *Content) Merge(results []result.Result) bool {
	arrived := newest(results)
	changed := false
	if !c.Pods && slices.ContainsFunc(arrived, c.scope.hasPod) {
		changed = c.turn()
	}
	if c.shares() {
		for _, w := range c.firsts(arrived) {
			changed = c.take(w) || changed
		}
	}
	for range maxRounds {
		again := false
		for _, w := range arrived {
			again = c.take(w) || again
		}
		if !again {
			break
		}
		changed = true
	}
	return changed
}

// newest returns the newest result of each object and line.
func newest(results []result.Result) []result.Result {
	type key struct {
		line
		who string
	}
	last := map[key]result.Result{}
	for _, each := range results {
		k := key{lineOf(each), Identity(each.Resource)}
		if before, ok := last[k]; !ok || supersedes(each, before) {
			last[k] = each
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b result.Result) int {
		if c := a.Time.Compare(b.Time); c != 0 {
			return c
		}
		return cmp.Or(order(a, b), cmp.Compare(Identity(a.Resource), Identity(b.Resource)), cmp.Compare(a.Policy.String(), b.Policy.String()),
			cmp.Compare(lineOf(a).container, lineOf(b).container))
	})
}

// shares reports whether pods have a shared result.
func (c *Content) shares() bool { return c.Pods && c.show.tellsPasses() }

func (s scope) is(of report.Resource) bool {
	return s.Name != "" && Identity(of) == Identity(report.Resource(s))
}

func (s scope) hasPod(w result.Result) bool {
	return s.Name != "" && s.Kind != "Pod" && w.Resource.Kind == "Pod"
}

// turn converts the report of an object to one with pods: its earlier results are listed as the
// object's own.
func (c *Content) turn() bool {
	c.Pods = true
	changed := false
	for l, s := range c.lines {
		if s.shared == nil {
			continue
		}
		own := *s.shared
		own.Resource = report.Resource(c.scope)
		s.shared, changed = nil, true
		c.put(l, Identity(own.Resource), own)
	}
	for t := range c.Unlisted {
		if t.who == "" {
			delete(c.Unlisted, t) // the next evaluation of the object restores it
			changed = true
		}
	}
	return changed
}

// firsts returns, for each line without a shared result, the most frequent result of the pods; of
// equally frequent ones the first.
func (c *Content) firsts(results []result.Result) []result.Result {
	by := map[line]map[string]result.Result{}
	var lines []line
	for _, w := range results {
		l := lineOf(w)
		if !c.scope.hasPod(w) || c.hasShared(l) {
			continue
		}
		if by[l] == nil {
			by[l] = map[string]result.Result{}
			lines = append(lines, l)
		}
		by[l][Identity(w.Resource)] = w
	}
	var firsts []result.Result
	for _, l := range lines {
		firsts = append(firsts, mostFrequent(by[l]))
	}
	return firsts
}

// mostFrequent returns the most frequent result; of equally frequent ones the first.
func mostFrequent(by map[string]result.Result) result.Result {
	times := map[verdict]int{}
	for _, w := range by {
		times[verdictOf(w)]++
	}
	return slices.MinFunc(sorted(by), func(a, b result.Result) int {
		if c := cmp.Compare(times[verdictOf(b)], times[verdictOf(a)]); c != 0 {
			return c
		}
		return cmp.Or(a.Time.Compare(b.Time), order(a, b))
	})
}

func (c *Content) hasShared(l line) bool {
	if s := c.lines[l]; s != nil && s.shared != nil {
		return true
	}
	_, unlisted := c.Unlisted[tokenOf(l, "")]
	return unlisted
}

// take merges one result.
func (c *Content) take(w result.Result) bool {
	l, who := lineOf(w), Identity(w.Resource)
	switch {
	case !c.Pods && c.scope.is(w.Resource):
		return c.put(l, "", w)
	case !c.shares():
		return c.put(l, who, w)
	case c.scope.hasPod(w):
		return c.takePod(l, who, w)
	case c.agrees(l, w):
		return c.unlist(l, who, w)
	}
	return c.put(l, who, w)
}

// takePod merges the result of a pod on a line with a shared result.
func (c *Content) takePod(l line, who string, w result.Result) bool {
	s := c.lines.at(l)
	if before, ok := s.listed[who]; ok && supersedes(before, w) {
		return false
	}
	switch {
	case !c.hasShared(l):
		c.share(l, w)
		return true
	case c.agrees(l, w):
		changed := c.unlist(l, who, w)
		return c.confirm(l, w) || changed
	case s.shared != nil && s.shared.Policy.Hash != w.Policy.Hash:
		if !supersedes(w, *s.shared) {
			return false // from an earlier version of the policy
		}
		c.share(l, w)
		return true
	case c.lines.lists(l, Identity(report.Resource(c.scope)), w): // the owner has it now, as during a rollout
		c.share(l, w)
		return true
	}
	return c.put(l, who, w)
}

// agrees reports whether a result equals the shared one.
func (c *Content) agrees(l line, w result.Result) bool {
	if s := c.lines[l]; s != nil && s.shared != nil {
		return alike(*s.shared, w)
	}
	status, ok := c.Unlisted[tokenOf(l, "")]
	return ok && status == w.Status
}

// lists reports whether the listed result of an object equals another.
func (e entries) lists(l line, who string, w result.Result) bool {
	if s := e[l]; s != nil {
		if own, ok := s.listed[who]; ok {
			return alike(own, w)
		}
	}
	return false
}

// share sets the shared result, and removes the listed results that equal it.
func (c *Content) share(l line, w result.Result) {
	s := c.lines.at(l)
	s.shared = nil
	c.put(l, "", w)
	for who, other := range s.listed {
		if alike(other, w) {
			delete(s.listed, who)
		}
	}
	c.dropTokens(func(t Token, status result.Status) bool { return t.who != "" && status == w.Status && sameLine(t, l) })
	c.lines.tidy(l)
}

// confirm records that the shared result was repeated.
func (c *Content) confirm(l line, w result.Result) bool {
	s := c.lines.at(l)
	switch {
	case s.shared == nil && c.show.shows(w.Status): // it was only counted, and has an entry now
		return c.put(l, "", w)
	case s.shared != nil && w.Time.After(s.shared.Time):
		if s.shared.Policy != w.Policy {
			return c.put(l, "", w) // equal under the current version of the policy
		}
		s.shared.Time, s.shared.Process = w.Time, w.Process
	}
	c.lines.tidy(l)
	return false
}

// unlist removes the listed results of an object with a newer one.
func (c *Content) unlist(l line, who string, w result.Result) bool {
	changed := false
	if s := c.lines[l]; s != nil {
		if before, ok := s.listed[who]; ok && !supersedes(before, w) {
			delete(s.listed, who)
			c.lines.tidy(l)
			changed = true
		}
	}
	return c.dropToken(tokenOf(l, who)) || changed
}

// put stores the result of an object, or for an empty identity the shared one, unless a newer one
// is there.
func (c *Content) put(l line, who string, w result.Result) bool {
	s, t := c.lines.at(l), tokenOf(l, who)
	defer c.lines.tidy(l)
	if !c.Pods && w.Image == nil && w.Status == result.Pass {
		// The hash is needed only for the shared result of pods, to detect a change of the
		// policy. These results are by far the most frequent, and without the hash a report is a
		// sixth smaller.
		w.Policy.Hash, w.Process = "", ""
	}
	before, listed := s.listed[who]
	if who == "" {
		w.Resource = report.Resource{}
		listed = s.shared != nil
		if listed {
			before = *s.shared
		}
	}
	if listed && supersedes(before, w) {
		return false
	}
	if !c.show.shows(w.Status) {
		s.remove(who)
		return c.setToken(t, w.Status, who) || listed
	}
	unlisted := c.dropToken(t)
	s.set(who, w)
	return !listed || unlisted || !same(before, w)
}

func (s *entry) set(who string, w result.Result) {
	if who == "" {
		s.shared = &w
		return
	}
	s.listed[who] = w
}

func (s *entry) remove(who string) {
	if who == "" {
		s.shared = nil
		return
	}
	delete(s.listed, who)
}

func (e entries) at(l line) *entry {
	s := e[l]
	if s == nil {
		s = &entry{listed: map[string]result.Result{}}
		e[l] = s
	}
	return s
}

// tidy removes an empty line.
func (e entries) tidy(l line) {
	if s := e[l]; s != nil && s.shared == nil && len(s.listed) == 0 {
		delete(e, l)
	}
}
