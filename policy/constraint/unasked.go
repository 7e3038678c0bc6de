package constraint

import (
	"errors"
	"strconv"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// Askable refuses kinds that no request brings; with admission it refuses those, too, of
// which there are objects and no webhook is called for. The path is the constraint's.
func (c *Constraint) Askable(path string, admission bool) error {
	var errs []error
	for i, r := range c.rules {
		for _, k := range r.kinds {
			if why, stored := policy.Unasked(k.group, k.name); why != "" && (admission || !stored) {
				errs = append(errs, field.Fail(path+".resourceRules["+strconv.Itoa(i)+"]", "a rule about %s could not hold: %s", k.name, why))
				break
			}
		}
	}
	return errors.Join(errs...)
}
