package verify

import (
	"slices"
	"time"
)

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

func sameSigner(a, b Signer) bool {
	if a.ID != "" || b.ID != "" {
		return a.ID == b.ID
	}
	return a.KeyFingerprint == b.KeyFingerprint && a.Subject == b.Subject && a.Issuer == b.Issuer
}

// Latest returns the facts with the latest time of Times, or all if none has a time. Beside a
// statement with a trusted time, one without any is not known to be later.
func Latest(facts []Fact) []Fact {
	times := Times(facts)
	last := slices.MaxFunc(append(times, time.Time{}), time.Time.Compare)
	if last.IsZero() {
		return facts
	}
	var latest []Fact
	for i, fact := range facts {
		if times[i].Equal(last) {
			latest = append(latest, fact)
		}
	}
	return latest
}
