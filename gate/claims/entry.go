package claims

import (
	"time"

	"github.com/quaymaster/quaymaster/policy"
)

// Entry is an answer with facts, and the time of its verification. Until fresh has
// passed, no other source is asked; until the end of its age it serves as a stale entry
// while registries do not answer.
type Entry struct {
	Answer       policy.Answer
	At           time.Time
	fresh, until time.Time
	// brief: cached as long as "none found", and by this process alone, since other replicas would
	// cache it longer.
	brief bool
}

func costOf(a policy.Answer) int {
	cost := answerBytes * (1 + len(a.Facts) + len(a.Rejections))
	for _, fact := range a.Facts {
		if fact.Statement != nil {
			cost += len(fact.Statement.Predicate)
		}
	}
	return cost
}
