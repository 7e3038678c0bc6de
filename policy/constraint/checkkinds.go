package constraint

import (
	"errors"
	"strconv"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/unsent"
)

// CheckKinds refuses kinds of which there are neither objects nor calls of webhooks; with admission
// it refuses every kind for which the API server calls no webhook. The path is the constraint's.
func (c *Constraint) CheckKinds(path string, admission bool) error {
	var errs []error
	for i, r := range c.rules {
		for _, k := range r.kinds {
			if why, stored := unsent.Why(k.group, k.name); why != "" && (admission || !stored) {
				errs = append(errs, field.Fail(path+".resourceRules["+strconv.Itoa(i)+"]", "a rule about %s could not hold: %s", k.name, why))
				break
			}
		}
	}
	return errors.Join(errs...)
}
