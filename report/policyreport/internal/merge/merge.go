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
func (r *Words) Merge(results []result.Result) bool {
	words := newest(results)
	changed := false
	if !r.Pods && slices.ContainsFunc(words, r.isPodOfScope) {
		changed = r.turn()
	}
	if r.shares() {
		for _, w := range r.firsts(words) {
			changed = r.take(w) || changed
		}
	}
	for range maxRounds {
		again := false
		for _, w := range words {
			again = r.take(w) || again
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
func (r *Words) shares() bool { return r.Pods && r.show.tellsPasses() }

func (r *Words) isScope(of report.Resource) bool {
	return r.scope.Name != "" && Identity(of) == Identity(r.scope)
}

func (r *Words) isPodOfScope(w result.Result) bool {
	return r.scope.Name != "" && r.scope.Kind != "Pod" && w.Resource.Kind == "Pod"
}

// turn converts the report of an object to one with pods: its earlier results are listed as the
// object's own.
func (r *Words) turn() bool {
	r.Pods = true
	changed := false
	for l, s := range r.lines {
		if s.shared == nil {
			continue
		}
		own := *s.shared
		own.Resource = r.scope
		s.shared, changed = nil, true
		r.put(l, Identity(own.Resource), own)
	}
	for t := range r.Unlisted {
		if t.who == "" {
			delete(r.Unlisted, t) // the next evaluation of the object restores it
			changed = true
		}
	}
	return changed
}

// firsts returns, for each line without a shared result, the most frequent result of the pods; of
// equally frequent ones the first.
func (r *Words) firsts(words []result.Result) []result.Result {
	by := map[line]map[string]result.Result{}
	var lines []line
	for _, w := range words {
		l := lineOf(w)
		if !r.isPodOfScope(w) || r.hasShared(l) {
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
		firsts = append(firsts, mostSaid(by[l]))
	}
	return firsts
}

// mostSaid returns the most frequent result; of equally frequent ones the first.
func mostSaid(by map[string]result.Result) result.Result {
	times := map[verdict]int{}
	for _, w := range by {
		times[verdictOf(w)]++
	}
	words := sorted(by)
	return slices.MinFunc(words, func(a, b result.Result) int {
		if c := cmp.Compare(times[verdictOf(b)], times[verdictOf(a)]); c != 0 {
			return c
		}
		return cmp.Or(a.Time.Compare(b.Time), order(a, b))
	})
}

func (r *Words) hasShared(l line) bool {
	if s := r.lines[l]; s != nil && s.shared != nil {
		return true
	}
	_, unlisted := r.Unlisted[tokenOf(l, "")]
	return unlisted
}

// take merges one result.
func (r *Words) take(w result.Result) bool {
	l, who := lineOf(w), Identity(w.Resource)
	switch {
	case !r.Pods && r.isScope(w.Resource):
		return r.put(l, "", w)
	case !r.shares():
		return r.put(l, who, w)
	case r.isPodOfScope(w):
		return r.takePod(l, who, w)
	case r.agrees(l, w):
		return r.unlist(l, who, w)
	}
	return r.put(l, who, w)
}

// takePod merges the result of a pod on a line with a shared result.
func (r *Words) takePod(l line, who string, w result.Result) bool {
	s := r.at(l)
	if before, ok := s.listed[who]; ok && supersedes(before, w) {
		return false
	}
	switch {
	case !r.hasShared(l):
		r.share(l, w)
		return true
	case r.agrees(l, w):
		changed := r.unlist(l, who, w)
		return r.confirm(l, w) || changed
	case s.shared != nil && s.shared.Policy.Hash != w.Policy.Hash:
		if !supersedes(w, *s.shared) {
			return false // from an earlier version of the policy
		}
		r.share(l, w)
		return true
	case r.isNowOwners(l, w):
		r.share(l, w)
		return true
	}
	return r.put(l, who, w)
}

// agrees reports whether a result equals the shared one.
func (r *Words) agrees(l line, w result.Result) bool {
	if s := r.lines[l]; s != nil && s.shared != nil {
		return alike(*s.shared, w)
	}
	status, ok := r.Unlisted[tokenOf(l, "")]
	return ok && status == w.Status
}

// isNowOwners reports whether the owner's listed result equals this one, as during a rollout.
func (r *Words) isNowOwners(l line, w result.Result) bool {
	if s := r.lines[l]; s != nil {
		if own, ok := s.listed[Identity(r.scope)]; ok {
			return alike(own, w)
		}
	}
	return false
}

// share sets the shared result, and removes the listed results that equal it.
func (r *Words) share(l line, w result.Result) {
	s := r.at(l)
	s.shared = nil
	r.put(l, "", w)
	for who, other := range s.listed {
		if alike(other, w) {
			delete(s.listed, who)
		}
	}
	r.dropTokens(func(t Token, status result.Status) bool { return t.who != "" && status == w.Status && sameLine(t, l) })
	r.tidy(l)
}

// confirm records that the shared result was repeated.
func (r *Words) confirm(l line, w result.Result) bool {
	s := r.at(l)
	switch {
	case s.shared == nil && r.show.shows(w.Status): // it was only counted, and has an entry now
		return r.put(l, "", w)
	case s.shared != nil && w.Time.After(s.shared.Time):
		if s.shared.Policy != w.Policy {
			return r.put(l, "", w) // equal under the current version of the policy
		}
		s.shared.Time, s.shared.Process = w.Time, w.Process
	}
	r.tidy(l)
	return false
}

// unlist removes the listed results of an object with a newer one.
func (r *Words) unlist(l line, who string, w result.Result) bool {
	changed := false
	if s := r.lines[l]; s != nil {
		if before, ok := s.listed[who]; ok && !supersedes(before, w) {
			delete(s.listed, who)
			r.tidy(l)
			changed = true
		}
	}
	return r.dropToken(tokenOf(l, who)) || changed
}

// put stores the result of an object, or for an empty identity the shared one, unless a newer one
// is there.
func (r *Words) put(l line, who string, w result.Result) bool {
	s, t := r.at(l), tokenOf(l, who)
	defer r.tidy(l)
	if !r.Pods && w.Image == nil && w.Status == result.Pass {
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
	if !r.show.shows(w.Status) {
		s.remove(who)
		return r.setToken(t, w.Status, who) || listed
	}
	unlisted := r.dropToken(t)
	s.set(who, w)
	return !listed || unlisted || !same(before, w)
}

func (s *said) set(who string, w result.Result) {
	if who == "" {
		s.shared = &w
		return
	}
	s.listed[who] = w
}

func (s *said) remove(who string) {
	if who == "" {
		s.shared = nil
		return
	}
	delete(s.listed, who)
}

func (r *Words) at(l line) *said {
	s := r.lines[l]
	if s == nil {
		s = &said{listed: map[string]result.Result{}}
		r.lines[l] = s
	}
	return s
}

// tidy removes an empty line.
func (r *Words) tidy(l line) {
	if s := r.lines[l]; s != nil && s.shared == nil && len(s.listed) == 0 {
		delete(r.lines, l)
	}
}
