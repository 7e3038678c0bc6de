// Package age bounds the age of an image and of the evidence about it. Ages count from verified times
// alone: those of transparency logs (Rekor v1) and timestamp authorities (RFC 3161). Every other time
// (the image's created, an annotation, a predicate's field) is written by the author of the image.
package age

import (
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/verify"
)

// ErrUnknown is the error of evidence whose age is not known: no log and no timestamp authority
// vouches for its time.
var ErrUnknown = errors.New("no transparency log entry and no timestamp that the policy accepts gives the time of signing")

// ErrNoClock means that the time of the evaluation is not known, which is a defect.
var ErrNoClock = errors.New("the age cannot be counted: the time of the evaluation is not known; this is a defect")

// Bounds are the bounds of one requirement. The zero value bounds nothing.
type Bounds struct {
	// By is the path of the requirement, as in requirements[0].
	By string
	// Minimum is how long ago the first evidence about an image was signed at least. Maximum is how
	// long ago each signature and attestation that counts was signed at most. Zero: unbounded.
	Minimum, Maximum time.Duration
	// At is the time of the evaluation.
	At time.Time
	// Whole: the check is the requirement itself, and is decided by the evidence that the other checks
	// of the image verified (decide.Ages). Of any other check, Maximum decides, and Minimum is a reason
	// to look for earlier evidence.
	Whole bool
}

// Stricter returns the stricter of each bound, for a check that is not the requirement itself.
func (b Bounds) Stricter(other Bounds) Bounds {
	if other.Maximum > 0 && (b.Maximum == 0 || other.Maximum < b.Maximum) {
		b.By, b.Maximum = other.By, other.Maximum
	}
	b.Minimum, b.At, b.Whole = max(b.Minimum, other.Minimum), other.At, false
	return b
}

// Fresh returns the facts that are not older than Maximum, the rejections of those that are, and
// ErrUnknown if none is left and the age of some is not known. A signature with several log entries or
// timestamps has its earliest time: anyone can log an old signature again.
func (b Bounds) Fresh(facts []verify.Fact) (fresh []verify.Fact, old []*verify.Rejection, unknown error) {
	if b.Maximum == 0 || b.Whole || len(facts) == 0 {
		return facts, nil, nil
	}
	if b.At.IsZero() {
		return nil, nil, ErrNoClock
	}
	for i, at := range Times(facts) {
		switch passed := b.At.Sub(at); {
		case at.IsZero():
			unknown = fmt.Errorf("%s: the age of the signature of %s is not known: %w", b.By, facts[i].Signer, ErrUnknown)
		case passed > b.Maximum:
			old = append(old, &verify.Rejection{
				Code: verify.TooOld, Origin: facts[i].Origin, Expected: "signed at most " + Text(b.Maximum) + " ago (" + b.By + ")",
				Found: "signed at " + stamp(at) + " by " + facts[i].Signer.String() + ", " + Text(passed) + " ago",
			})
		default:
			fresh = append(fresh, facts[i])
		}
	}
	if len(fresh) > 0 {
		unknown = nil
	}
	return fresh, old, unknown
}

// Times returns verify.Times by verified times alone; zero for a fact without one.
func Times(facts []verify.Fact) []time.Time {
	return verify.Times(Vouched(facts))
}

// Signing is the verified time of signing of a statement, and its source; the zero Signing is none.
type Signing struct {
	At     time.Time
	Source verify.TimeSource
}

// Variable is the name by which policies in JMESPath, CUE and Rego read Value. No field of a statement has
// it: a statement is below a member of its own, or loses a member of this name.
const Variable = "quaymaster"

// Value returns the signing as decoded JSON: signedAt (RFC 3339) and timeSource (log or timestamp); ErrUnknown
// if there is none.
func (s Signing) Value() (map[string]any, error) {
	if s.At.IsZero() {
		return nil, ErrUnknown
	}
	return map[string]any{"signedAt": stamp(s.At), "timeSource": string(s.Source)}, nil
}

// Signings returns Times with their sources.
func Signings(facts []verify.Fact) []Signing {
	list := make([]Signing, len(facts))
	for i, at := range Times(facts) {
		list[i].At = at
		for _, fact := range facts {
			if !at.IsZero() && fact.VerifiedTime().Equal(at) {
				list[i].Source = fact.TimeSource
				break
			}
		}
	}
	return list
}

// Earliest returns the earliest of Signings, and the facts with it; zero and none if no fact has a time.
func Earliest(facts []verify.Fact) (at Signing, with []verify.Fact) {
	return extreme(facts, time.Time.Before)
}

// Latest returns the latest of Signings, and the facts with it; zero and none if no fact has a time. A
// signature that is logged or timestamped again has its earliest time.
func Latest(facts []verify.Fact) (at Signing, with []verify.Fact) {
	return extreme(facts, time.Time.After)
}

func extreme(facts []verify.Fact, replaces func(a, b time.Time) bool) (at Signing, with []verify.Fact) {
	for i, one := range Signings(facts) {
		switch {
		case one.At.IsZero():
		case at.At.IsZero() || replaces(one.At, at.At):
			at, with = one, []verify.Fact{facts[i]}
		case one.At.Equal(at.At):
			with = append(with, facts[i])
		}
	}
	return at, with
}

// Earlier returns the fact with the earlier verified time; nil if neither has one.
func Earlier(a, b *verify.Fact) *verify.Fact {
	switch {
	case b == nil || b.VerifiedTime().IsZero():
		return a
	case a == nil || b.VerifiedTime().Before(a.VerifiedTime()):
		return b
	}
	return a
}

// First returns the fact with the earliest verified time; nil if none has one.
func First(facts []verify.Fact) (first *verify.Fact) {
	for i := range facts {
		first = Earlier(first, &facts[i])
	}
	return first
}

// Describe names the time of a fact, its source and its age.
func (b Bounds) Describe(first *verify.Fact) string {
	at := first.VerifiedTime()
	return fmt.Sprintf("signed at %s by %s, by the clock of %s: %s ago", stamp(at), first.Signer, first.TimeSource, Text(b.At.Sub(at)))
}

// Text writes an age in whole seconds, and in days and hours where it has many.
func Text(d time.Duration) string {
	const day = 24 * time.Hour
	d = d.Truncate(time.Second)
	switch {
	case d >= 2*day && d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	case d >= 2*day:
		return fmt.Sprintf("%d days %s", d/day, trimmed(d%day))
	}
	return trimmed(d)
}

// trimmed writes a duration without parts that are zero.
func trimmed(d time.Duration) string {
	switch {
	case d%time.Hour == 0 && d > 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0 && d > 0 && d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d%time.Minute == 0 && d > 0:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
