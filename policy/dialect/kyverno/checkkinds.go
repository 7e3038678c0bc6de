package kyverno

import (
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/unsent"
)

// checkKinds refuses a rule for kinds of which there are neither objects nor calls of webhooks; with
// admission it refuses every kind for which the API server calls no webhook.
func checkKinds(targets []policy.Target, path string, admission bool) error {
	var refused []string
	var errs []error
	for _, t := range targets {
		if why, stored := unsent.Why(t.Group, t.Kind); why != "" && (admission || !stored) && !slices.Contains(refused, t.Kind) {
			refused = append(refused, t.Kind)
			errs = append(errs, field.Fail(path+".match", "a rule about %s could not hold: %s", t.Kind, why))
		}
	}
	return errors.Join(errs...)
}
