package main

import (
	"fmt"
	"time"
)

// effectiveTolerance is how far back --effective-time may be: a pipeline computes the
// present before it asks.
const effectiveTolerance = 5 * time.Minute

// clock is the one that policies see: the wall clock, or one that is ahead of it by
// so much as --effective-time is. A time in the past would bring exceptions back that
// have ended.
func (f *setupFlags) clock() (func() time.Time, error) {
	if f.effective == "" {
		return time.Now, nil
	}
	at, err := optionalTime("--effective-time", f.effective)
	if err != nil {
		return nil, err
	}
	ahead := time.Until(at)
	if ahead < -effectiveTolerance {
		return nil, fmt.Errorf("--effective-time %s is in the past: exceptions and overrides that have ended since would count again; what was decided then is in the decision log", f.effective)
	}
	return func() time.Time { return time.Now().Add(ahead) }, nil
}
