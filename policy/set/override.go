package set

import (
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// matching is the degree to which an override matches a subject.
type matching int

const (
	unmatched matching = iota
	uncertain
	matched
)

// matchOf reports whether the override matches the subject. A subject with known images but an
// unknown namespace may be in any namespace: the match is then doubtful for a Deny, and absent
// for an Allow.
func matchOf(o *policy.Override, s *policy.Subject) matching {
	switch {
	case !o.Expires.IsZero() && !s.Time.Before(o.Expires):
		return unmatched
	case len(o.Namespaces) == 0 || wildcard.Any(o.Namespaces, s.Namespace):
		return matched
	case s.Bare && s.Namespace == "" && o.Effect == policy.OverrideDeny:
		return uncertain
	}
	return unmatched
}
