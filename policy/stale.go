package policy

import (
	"fmt"
	"time"
)

// StaleAnnotation is the maximum age of cached verifications while the registry does not answer,
// as in 12h; 0s disables the stale cache. No dialect has a field for it.
const StaleAnnotation = "quaymaster.dev/stale-if-error"

// MaxStale bounds it: a verification that could not be repeated for a week is no longer valid.
const MaxStale = 7 * 24 * time.Hour

// StaleFrom reads a policy's annotation; nil if there is none.
func StaleFrom(annotations map[string]string) (*time.Duration, error) {
	text, said := annotations[StaleAnnotation]
	if !said {
		return nil, nil
	}
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 || age > MaxStale {
		return nil, fmt.Errorf("metadata.annotations[%s]: %q: want a time from 0s to %s, as 12h", StaleAnnotation, text, MaxStale)
	}
	return &age, nil
}
