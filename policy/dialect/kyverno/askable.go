package kyverno

import (
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// askable refuses a rule about kinds that no request brings. A rule that is evaluated when
// an object is admitted is refused as well for kinds of which no webhook is called.
func askable(targets []policy.Target, path string, admission bool) error {
	var refused []string
	var errs []error
	for _, t := range targets {
		why, stored := policy.Unasked(t.Group, t.Kind)
		if why != "" && (admission || !stored) && !slices.Contains(refused, t.Kind) {
			refused = append(refused, t.Kind)
			errs = append(errs, field.Fail(path+".match", "a rule about %s could not hold: %s", t.Kind, why))
		}
	}
	return errors.Join(errs...)
}
