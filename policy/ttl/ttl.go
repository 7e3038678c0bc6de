// Package ttl reads the label for the lifetime of an object.
//
// The label is that of Kyverno 1.19: cleanup.kyverno.io/ttl holds a duration since the object's
// creation, or a date, and the annotation cleanup.kyverno.io/propagation-policy the way of the
// deletion. A value that is not understood as a whole is an error, and the object then stays:
// Kyverno takes the parts of a duration that it understands, and wraps one that is too large, so
// that a typing error deletes at another time than it seems to.
package ttl

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// Label is the label with the lifetime.
	Label = "cleanup.kyverno.io/ttl"
	// PropagationAnnotation is the annotation with the propagation of the deletion.
	PropagationAnnotation = "cleanup.kyverno.io/propagation-policy"
	// maxValue bounds a value, in bytes: that of a label has 63 at most.
	maxValue = 63
)

// The layouts of dates, in UTC.
const (
	dateTime = "2006-01-02T150405Z"
	date     = "2006-01-02"
)

// Deadline returns the time at which the lifetime ends of an object that was created at a time.
// Durations are those of Go, and whole numbers of weeks, days, hours, minutes and seconds in
// Kyverno's words, as in 2days or 1w12h. A negative, overflowing or otherwise unreadable value is
// an error, and so is a duration of an object without a time of creation.
func Deadline(value string, created time.Time) (time.Time, error) {
	if len(value) > maxValue {
		return time.Time{}, fmt.Errorf("label %s: %d bytes are more than a label may have", Label, len(value))
	}
	for _, layout := range []string{dateTime, date} {
		if at, err := time.Parse(layout, value); err == nil {
			return at, nil
		}
	}
	lasts, ok := duration(value)
	switch {
	case !ok:
		return time.Time{}, fmt.Errorf("label %s: %q is no duration such as 2h30m or 5d, and no date such as 2030-01-31 or 2030-01-31T150405Z", Label, value)
	case created.IsZero():
		return time.Time{}, fmt.Errorf("label %s: %q: the object has no time of creation", Label, value)
	}
	return created.Add(lasts), nil
}

// part is one number with its unit.
var part = regexp.MustCompile(`^([0-9]+)([A-Za-z]+)`)

// duration parses a duration; false for one that is negative, too long or not understood.
func duration(value string) (time.Duration, bool) {
	if plain, err := time.ParseDuration(value); err == nil {
		return plain, plain >= 0
	}
	var total time.Duration
	for rest := value; rest != ""; {
		found := part.FindStringSubmatch(rest)
		if found == nil {
			return 0, false
		}
		rest = rest[len(found[0]):]
		unit := unitOf(strings.ToLower(found[2]))
		number, err := strconv.ParseInt(found[1], 10, 64)
		if err != nil || unit == 0 || number > int64((math.MaxInt64-total)/unit) {
			return 0, false
		}
		total += time.Duration(number) * unit
	}
	return total, value != ""
}

// unitOf returns the unit of a word in lower case; 0 for another word.
func unitOf(word string) time.Duration {
	switch word {
	case "ns", "nano", "nanos", "nanosecond", "nanoseconds":
		return time.Nanosecond
	case "us", "micro", "micros", "microsecond", "microseconds":
		return time.Microsecond
	case "ms", "milli", "millis", "millisecond", "milliseconds":
		return time.Millisecond
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "h", "hr", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return 24 * time.Hour
	case "w", "wk", "week", "weeks":
		return 7 * 24 * time.Hour
	}
	return 0
}

// Propagation returns the propagation that an annotation names: Foreground, Background or Orphan.
// An empty annotation is the kind's own default, and so empty. Another value is an error, because
// the three differ in what else is deleted.
func Propagation(annotation string) (string, error) {
	switch annotation {
	case "", "Foreground", "Background", "Orphan":
		return annotation, nil
	}
	return "", fmt.Errorf("annotation %s: %q: want Foreground, Background or Orphan", PropagationAnnotation, annotation)
}
