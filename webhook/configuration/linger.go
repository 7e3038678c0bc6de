package configuration

import (
	"maps"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/policy"
)

// lingers is how long what nobody wants any more is asked about. A policy that is deleted
// and made again, as by kubectl replace --force, would else be in force while the API
// server is still told to ask about nothing, and learns otherwise a round later.
const lingers = 5 * time.Second

// lingering is what rounds before asked for.
type lingering struct {
	policies map[string]*policy.Policy // of the last round, by ID
	gone     map[string]departure      // of rounds before it
	mirrors  Mirrors                   // the most of those rounds
	since    time.Time                 // when mirrors began to ask for less
}

type departure struct {
	policy *policy.Policy
	since  time.Time
}

// over reports whether what is gone since then is not asked about any more.
func over(since, now time.Time) bool { return now.Sub(since) >= lingers }

// with adds to an input what has gone only now. A policy that changed is as it is now.
func (l *lingering) with(in Input, now time.Time) Input {
	policies := make(map[string]*policy.Policy, len(in.Policies))
	for _, p := range in.Policies {
		policies[p.ID()] = p
	}
	if l.gone == nil {
		l.gone = map[string]departure{}
	}
	for id, p := range l.policies {
		if policies[id] == nil {
			l.gone[id] = departure{policy: p, since: now}
		}
	}
	l.policies = policies
	maps.DeleteFunc(l.gone, func(id string, d departure) bool { return policies[id] != nil || over(d.since, now) })
	in.Policies = slices.Clone(in.Policies)
	for _, id := range slices.Sorted(maps.Keys(l.gone)) {
		in.Policies = append(in.Policies, l.gone[id].policy)
	}
	switch {
	case in.Mirrors >= l.mirrors:
		l.mirrors, l.since = in.Mirrors, time.Time{}
	case l.since.IsZero():
		l.since = now
	case over(l.since, now):
		l.mirrors, l.since = in.Mirrors, time.Time{}
	}
	in.Mirrors = l.mirrors
	return in
}

// next returns in what time something of it is over, or most if nothing is before.
func (l *lingering) next(now time.Time, most time.Duration) time.Duration {
	for _, d := range l.gone {
		most = min(most, lingers-now.Sub(d.since))
	}
	if !l.since.IsZero() {
		most = min(most, lingers-now.Sub(l.since))
	}
	return max(most, 0)
}
