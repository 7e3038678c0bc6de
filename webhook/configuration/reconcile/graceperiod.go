package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// gracePeriod is the grace period after a deletion. A policy that is deleted and created again, as by
// kubectl replace --force, is in force at once. Without the grace period its webhook would be
// missing until the next round.
const gracePeriod = 5 * time.Second

// recentDeletions is the state of earlier rounds.
type recentDeletions struct {
	policies map[string]*policy.Policy // of the last round, by ID
	deleted  map[string]deletion       // of earlier rounds
	mirrors  configuration.Mirrors     // the highest of those rounds
	since    time.Time                 // when the requirement of mirrors decreased
}

type deletion struct {
	policy *policy.Policy
	since  time.Time
}

// over reports whether the grace period has passed.
func over(since, now time.Time) bool { return now.Sub(since) >= gracePeriod }

// with adds recently deleted policies and mirrors to an input. Changed policies are taken as they
// are now.
func (l *recentDeletions) with(in configuration.Input, now time.Time) configuration.Input {
	policies := make(map[string]*policy.Policy, len(in.Policies))
	for _, p := range in.Policies {
		policies[p.ID()] = p
	}
	if l.deleted == nil {
		l.deleted = map[string]deletion{}
	}
	for id, p := range l.policies {
		if policies[id] == nil {
			l.deleted[id] = deletion{policy: p, since: now}
		}
	}
	l.policies = policies
	maps.DeleteFunc(l.deleted, func(id string, d deletion) bool { return policies[id] != nil || over(d.since, now) })
	in.Policies = slices.Clone(in.Policies)
	for _, id := range slices.Sorted(maps.Keys(l.deleted)) {
		in.Policies = append(in.Policies, l.deleted[id].policy)
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

// next returns the time until the next grace period ends, at most most.
func (l *recentDeletions) next(now time.Time, most time.Duration) time.Duration {
	for _, d := range l.deleted {
		most = min(most, gracePeriod-now.Sub(d.since))
	}
	if !l.since.IsZero() {
		most = min(most, gracePeriod-now.Sub(l.since))
	}
	return max(most, 0)
}
