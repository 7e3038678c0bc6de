package verify

import (
	"slices"
	"time"
)

// Times returns for each fact the trusted time of signing of its statement; zero if there is
// none. A signature with several log entries or timestamps has its earliest time: anyone can log
// or timestamp an old signature again, but not make it older. Another signature of an equal
// statement has its own time, since only the signer can make it. Equal statements of one signer
// count as one unless their signatures are known to differ.
func Times(facts []Fact) []time.Time {
	times := make([]time.Time, len(facts))
	for i, fact := range facts {
		times[i] = fact.SignedAt
		for _, other := range facts {
			if !other.SignedAt.IsZero() && (times[i].IsZero() || other.SignedAt.Before(times[i])) && maySignOnce(fact, other) {
				times[i] = other.SignedAt
			}
		}
	}
	return times
}

// maySignOnce reports whether two facts may have one signature. Those without a statement have one only
// if they are known to.
func maySignOnce(a, b Fact) bool {
	shared := slices.ContainsFunc(a.Signatures, func(id string) bool { return slices.Contains(b.Signatures, id) })
	if a.Statement == nil && b.Statement == nil {
		return shared && sameSigner(a.Signer, b.Signer)
	}
	differ := len(a.Signatures) > 0 && len(b.Signatures) > 0 && !shared
	return !differ && a.Statement != nil && b.Statement != nil && a.Statement.PredicateType == b.Statement.PredicateType &&
		string(a.Statement.Predicate) == string(b.Statement.Predicate) && sameSigner(a.Signer, b.Signer)
}

// Latest returns the facts with the latest time of Times, or all if none has a time. Beside a
// statement with a trusted time, one without any is not known to be later.
func Latest(facts []Fact) []Fact {
	times := Times(facts)
	return LatestBy(facts, func(i int) time.Time { return times[i] })
}

// LatestBy returns the items with the latest time, or all if none has a time.
func LatestBy[T any](items []T, at func(i int) time.Time) []T {
	var last time.Time
	for i := range items {
		if at(i).After(last) {
			last = at(i)
		}
	}
	if last.IsZero() {
		return items
	}
	var latest []T
	for i, item := range items {
		if at(i).Equal(last) {
			latest = append(latest, item)
		}
	}
	return latest
}
