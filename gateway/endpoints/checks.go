package endpoints

import (
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/webhook"
)

// Checks returns the checks of /readyz: of the certificate and of the requirements.
func Checks(certificate func() error, requirements []gateway.Requirement) []webhook.Check {
	checks := []webhook.Check{{Name: "certificate", Ready: certificate}}
	for _, r := range requirements {
		checks = append(checks, webhook.Check{Name: r.Name, Ready: func() error {
			select {
			case <-r.Met:
				return nil
			default:
				return errors.New(r.Why)
			}
		}})
	}
	return checks
}

// AllReady evaluates the checks of /readyz, except a drain.
func AllReady(checks []webhook.Check) func() bool {
	return func() bool {
		return !slices.ContainsFunc(checks, func(c webhook.Check) bool { return c.Ready() != nil })
	}
}
