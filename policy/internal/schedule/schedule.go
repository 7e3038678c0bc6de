// Package schedule computes the times of schedules in cron format, as Kyverno 1.19 reads them: five
// fields, with a year behind them or with seconds before and a year behind them, or a name such as
// @daily (github.com/aptible/supercronic/cronexpr). A schedule is in UTC, as in Kyverno's containers,
// unless it begins with a time zone of the IANA database, as TZ=Europe/Berlin or CRON_TZ=Europe/Berlin.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	// The images of the gateway have no files of time zones.
	_ "time/tzdata"

	"github.com/aptible/supercronic/cronexpr"
)

const (
	// maxText bounds a schedule; the longest useful ones have some hundred bytes.
	maxText = 512
	// around is how far from a change of a zone's clock its readings may be ambiguous: most clocks
	// change by an hour, and a few did by more.
	around = 3 * time.Hour
	// maxSteps bounds the times that are passed over there: one a second.
	maxSteps = int(2*around/time.Second) + 1
)

// Schedule is a parsed schedule. It is immutable and safe for concurrent use.
type Schedule struct {
	text       string
	expression *cronexpr.Expression
	location   *time.Location
}

// Parse reads a schedule. It refuses one without a time after now.
func Parse(text string, now time.Time) (*Schedule, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("a schedule of %d bytes: want at most %d", len(text), maxText)
	}
	s := &Schedule{text: text, location: time.UTC}
	fields := strings.TrimSpace(text)
	if zone, rest, found := strings.Cut(fields, " "); found && (strings.HasPrefix(zone, "TZ=") || strings.HasPrefix(zone, "CRON_TZ=")) {
		_, name, _ := strings.Cut(zone, "=")
		var err error
		s.location, err = location(name)
		if err != nil {
			return nil, err
		}
		fields = strings.TrimSpace(rest)
	}
	if fields == "" {
		return nil, errors.New("is empty: want five fields (minute, hour, day of the month, month, day of the week), such as 0 3 * * *")
	}
	var err error
	s.expression, err = cronexpr.ParseStrict(fields)
	if err != nil {
		return nil, fmt.Errorf("%q is no schedule: %w: want five fields (minute, hour, day of the month, month, day of the week), such as 0 3 * * *", text, err)
	}
	if s.Next(now).IsZero() {
		return nil, fmt.Errorf("%q has no time after %s, and so nothing would run", text, now.UTC().Format(time.RFC3339))
	}
	return s, nil
}

// location finds a time zone. That of the machine is none: replicas and the command line would differ.
func location(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("the time zone %q: want a name such as Europe/Berlin", name)
	}
	found, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("the time zone %q is unknown: want a name such as Europe/Berlin", name)
	}
	return found, nil
}

// String returns the schedule as it is written.
func (s *Schedule) String() string { return s.text }

// Next returns the first time after another, in UTC; zero if there is none. A reading that a zone's
// clock skips is an hour later, and one that it has twice counts once, at the later time.
func (s *Schedule) Next(after time.Time) time.Time {
	// Where a zone changes its offset the library may return a time before the given one: it gets the
	// readings of the zone's clock, as if in UTC.
	clock := reading(after.In(s.location))
	if before, behind := offset(after.Add(-around).In(s.location)), offset(after.Add(around).In(s.location)); before != behind {
		clock = clock.Add(-around) // readings may be before the given one, and later
	}
	for range maxSteps {
		clock = s.nextReading(clock)
		if clock.IsZero() {
			return time.Time{}
		}
		next := time.Date(clock.Year(), clock.Month(), clock.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, s.location)
		if next.After(after) {
			return next.UTC()
		}
	}
	return time.Time{}
}

// nextReading recovers from the library's panic about a range with a step whose end is before its
// begin: there is no such time. The library writes to the expression, so it gets a copy.
func (s *Schedule) nextReading(clock time.Time) (next time.Time) {
	defer func() {
		if recover() != nil {
			next = time.Time{}
		}
	}()
	expression := *s.expression
	return expression.Next(clock)
}

// reading returns a time in UTC whose clock has the reading of another's.
func reading(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

func offset(t time.Time) int {
	_, seconds := t.Zone()
	return seconds
}
