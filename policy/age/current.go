package age

import (
	"slices"

	"github.com/quaymaster/quaymaster/verify"
)

// Current returns the latest statements of each signer, by the verified time of signing, without those older than
// Maximum; of one signer's without a verified time all count. lists are by trusted signer. It is empty if there is
// no statement, and the error is ErrUnknown if the age of one is not known, or a *verify.Rejection if none is recent.
func (b Bounds) Current(lists [][]verify.Fact) ([]verify.Fact, error) {
	var latest []verify.Fact
	for _, facts := range lists {
		for _, fact := range verify.Latest(Vouched(facts)) {
			if fact.Statement != nil && !slices.ContainsFunc(latest, func(have verify.Fact) bool {
				return string(have.Statement.Predicate) == string(fact.Statement.Predicate)
			}) {
				latest = append(latest, fact)
			}
		}
	}
	fresh, old, err := b.Fresh(latest)
	switch {
	case err == nil && len(fresh)+len(old) < len(latest):
		return nil, ErrUnknown // beside a fresh one: it may be later
	case err != nil:
		return nil, err
	case len(fresh) == 0 && len(old) > 0:
		return nil, old[0]
	}
	return fresh, nil
}

// Vouched returns the facts with their verified times alone.
func Vouched(facts []verify.Fact) []verify.Fact {
	facts = slices.Clone(facts)
	for i := range facts {
		facts[i].SignedAt = facts[i].VerifiedTime()
		if facts[i].SignedAt.IsZero() {
			facts[i].TimeSource = ""
		}
	}
	return facts
}
