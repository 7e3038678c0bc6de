package evaluate

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// errNotAsked is the gap in a cached answer: its facts may be enough without a lookup.
var errNotAsked = errors.New("the cache has no answer, and no other source was queried; this is a defect")

var errNeverAsked = errors.New("the claim query was never made; this is a defect")

// claimQuery is a policy.Question about one digest, in comparable form.
type claimQuery struct {
	digest    image.Digest
	authority *verify.Authority
	role      attest.Role
	predicate string
	artifact  bool
	sources   string
}

func claimQueryOf(digest image.Digest, q policy.Question) claimQuery {
	return claimQuery{
		digest: digest, authority: q.Authority, role: q.Role, predicate: q.Predicate,
		artifact: q.Artifact, sources: sourcesKey(q.Sources),
	}
}

func sourcesKey(sources []attest.Source) string {
	var b strings.Builder
	for _, s := range sources {
		b.WriteString(s.Repository.String() + "\x00" + s.TagPrefix + "\x01")
	}
	return b.String()
}

// questionsOf returns the claim queries of all checks.
func questionsOf(checks []*policy.Check) []policy.Question {
	var questions []policy.Question
	for _, check := range checks {
		questions = append(questions, check.Questions()...)
	}
	return questions
}

// answers holds the answers to claim queries, each query asked once. It is safe for concurrent
// use.
type answers struct {
	mu    sync.Mutex
	first image.Repository // where evidence is searched first
	known map[claimQuery]policy.Answer
	old   []claimQuery             // answered from old cache entries
	stale map[claimQuery]time.Time // answered from stale entries, and when those were verified
}

// has reports whether a query was answered.
func (a *answers) has(key claimQuery) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.known[key]
	return ok
}

// about returns the answers about one digest.
func (a *answers) about(digest image.Digest) policy.Answers {
	return func(q policy.Question) policy.Answer {
		a.mu.Lock()
		defer a.mu.Unlock()
		answer, ok := a.known[claimQueryOf(digest, q)]
		if !ok {
			answer.Gaps = []error{errNeverAsked}
		}
		return answer
	}
}

func (a *answers) set(key claimQuery, answer policy.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[key] = answer
}

// merge adds the answer of a fallback to the earlier ones.
func (a *answers) merge(key claimQuery, answer policy.Answer, from image.Repository) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[key] = claims.Merge(a.known[key], answer, from)
}

// markOld records that an answer is only good to allow by.
func (a *answers) markOld(key claimQuery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.old, key) {
		a.old = append(a.old, key)
	}
}

// dropOld drops the answer from an old cache entry, and reports whether it was one.
func (a *answers) dropOld(key claimQuery) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.old, key)
	if i < 0 {
		return false
	}
	a.old = slices.Delete(a.old, i, i+1)
	delete(a.known, key)
	delete(a.stale, key)
	return true
}

// isUnresponsive reports whether a query has no facts because no registry answered at all.
func (a *answers) isUnresponsive(key claimQuery) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := a.known[key]
	return len(answer.Facts) == 0 && len(answer.Gaps) > 0 && !slices.ContainsFunc(answer.Gaps, func(gap error) bool { return !deadline.IsUnresponsive(gap) })
}

// isIncomplete reports whether a repository of the query's answer was not read to the end now, so
// that it may have newer statements, and whether a part of its statements is known.
func (a *answers) isIncomplete(key claimQuery) (is, isPartial bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	isStale, hasGaps, isStatement := !a.stale[key].IsZero(), len(a.known[key].Gaps) > 0, key.role != attest.Signature
	return isStatement && (isStale || hasGaps), isStatement && hasGaps && len(a.known[key].Facts) > 0
}

// hasMisses reports whether queries missed the cache and were sent nowhere else.
func (a *answers) hasMisses() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, answer := range a.known {
		if isMiss(answer) {
			return true
		}
	}
	return false
}

// dropMisses drops every answer with a cache miss as its gap.
func (a *answers) dropMisses() {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.known, func(_ claimQuery, answer policy.Answer) bool { return isMiss(answer) })
}

func isMiss(answer policy.Answer) bool { return slices.Contains(answer.Gaps, errNotAsked) }

// markLate marks the gaps that the request's deadline caused.
func (a *answers) markLate(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, answer := range a.known {
		if len(answer.Gaps) == 0 {
			continue
		}
		answer.Gaps = slices.Clone(answer.Gaps) // others may hold it
		for i, gap := range answer.Gaps {
			answer.Gaps[i] = deadline.Mark(ctx, gap)
		}
		a.known[key] = answer
	}
}

// facts returns all verified facts, of whatever digest, in the order of the questions, and why
// the answer of one of the authorities is incomplete.
func (a *answers) facts(questions []policy.Question, by func(*verify.Authority) bool) (facts []verify.Fact, gap error) {
	first := map[claimQuery]int{} // reasons do not differ between requests
	for i, q := range slices.Backward(questions) {
		first[claimQueryOf(image.Digest{}, q)] = i
	}
	position := func(key claimQuery) int {
		key.digest = image.Digest{}
		return first[key]
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(a.known), func(x, y claimQuery) int {
		return cmp.Or(cmp.Compare(position(x), position(y)), cmp.Compare(x.digest.String(), y.digest.String()))
	})
	for _, key := range keys {
		answer := a.known[key]
		facts = append(facts, answer.Facts...)
		if len(answer.Gaps) > 0 && by(key.authority) {
			gap = answer.Gaps[0]
		}
	}
	return facts, gap
}
