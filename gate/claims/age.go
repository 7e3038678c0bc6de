package claims

import "time"

// A process has two clocks: the settable wall clock, and a monotonic clock that stops
// while the machine sleeps (time.Time, "Monotonic Clocks"). A cached entry has the greater
// of the two ages; values sent to other processes carry wall time only.

// passed is how much time has passed.
func passed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// isBefore reports whether both clocks say so.
func isBefore(now, end time.Time) bool { return now.Before(end) && now.Round(0).Before(end.Round(0)) }

// Earlier returns the earlier of two times; the zero time is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
