package verify

import "time"

// Times returns for each fact the trusted time of signing of its statement; zero if there is
// none. A statement that one signer signed several times has its earliest time: anyone can log
// or timestamp an old signature again, but not make it older.
func Times(facts []Fact) []time.Time {
	times := make([]time.Time, len(facts))
	for i, fact := range facts {
		times[i] = fact.SignedAt
		for _, other := range facts {
			if !other.SignedAt.IsZero() && (times[i].IsZero() || other.SignedAt.Before(times[i])) && sameStatement(fact, other) {
				times[i] = other.SignedAt
			}
		}
	}
	return times
}

func sameStatement(a, b Fact) bool {
	return a.Statement != nil && b.Statement != nil && a.Statement.PredicateType == b.Statement.PredicateType &&
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
