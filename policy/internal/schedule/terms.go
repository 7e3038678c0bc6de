package schedule

import (
	"errors"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// Terms are the settings that every policy about deletions has. They are immutable and safe for
// concurrent use.
type Terms struct {
	schedule    *Schedule
	propagation policy.Propagation
}

// ParseTerms reads spec.schedule and spec.deletionPropagationPolicy; nil is absent. Errors are about
// these fields. A nil clock is time.Now.
func ParseTerms(text string, propagation *string, clock func() time.Time) (Terms, error) {
	if clock == nil {
		clock = time.Now
	}
	var errs [2]error
	var t Terms
	t.schedule, errs[0] = Parse(text, clock())
	if errs[0] != nil {
		errs[0] = field.Fail("spec.schedule", "%w", errs[0])
	}
	if propagation != nil {
		switch *propagation {
		case "Foreground", "Background", "Orphan":
			t.propagation = policy.Propagation(*propagation)
		default:
			errs[1] = field.Fail("spec.deletionPropagationPolicy", "unknown value %q: want Foreground, Background or Orphan", *propagation)
		}
	}
	return t, errors.Join(errs[:]...)
}

// Next returns the first time of the schedule after another; zero if there is none.
func (t Terms) Next(after time.Time) time.Time { return t.schedule.Next(after) }

// Propagation is how the objects that a deleted object owns are handled.
func (t Terms) Propagation() policy.Propagation { return t.propagation }
