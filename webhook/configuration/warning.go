package configuration

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
)

// Warning describes a part of a policy for which the API server does not call the gateway as the
// policy requires.
type Warning struct {
	// Policy is the ID of the policy; empty if the warning applies to all of them.
	Policy string
	// Message describes the missing part, and the fix if that is not intended.
	Message string
	// Excluded: all that the policy matches is in excluded namespaces.
	Excluded bool
}

// String returns the policy and the message.
func (w Warning) String() string {
	if w.Policy == "" {
		return w.Message
	}
	return w.Policy + ": " + w.Message
}

// sorted returns the warnings of all endpoints in stable order, each once.
func sorted(phases ...*requirements) []Warning {
	var all []Warning
	for _, q := range phases {
		all = append(all, q.warnings...)
	}
	slices.SortFunc(all, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(all)
}

func (q *requirements) warn(p *policy.Policy, format string, args ...any) {
	q.warnings = append(q.warnings, Warning{Policy: p.ID(), Message: fmt.Sprintf(format, args...)})
}
