package gate

import "time"

// A process has two clocks: the one on the wall, which is set, and one that is not, but
// stands still while a machine sleeps (time.Time, "Monotonic Clocks"). What is remembered
// is as old as the one that says more; what is told to others has a wall's time only.

// passed is how much time has passed.
func passed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// isBefore reports whether both clocks say so.
func isBefore(now, end time.Time) bool { return now.Before(end) && now.Round(0).Before(end.Round(0)) }
