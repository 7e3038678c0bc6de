package timeline

import "time"

// Ring holds the counts of the latest intervals. T is the type of the counts; its zero value counts
// nothing. It is not safe for concurrent use. Create one with New.
type Ring[T any] struct {
	grain time.Duration
	slots []slot[T]
}

type slot[T any] struct {
	start  int64 // in seconds; a different value means that the counts are of an earlier cycle
	counts T
}

// Interval has the counts of one interval.
type Interval[T any] struct {
	Start  time.Time
	Counts T
}

// New creates a ring of so many intervals of a length, at least a second each.
func New[T any](grain time.Duration, intervals int) *Ring[T] {
	return &Ring[T]{grain: grain, slots: make([]slot[T], intervals)}
}

// At returns the counts of the interval that contains a time; nil if it is too old for the ring.
func (r *Ring[T]) At(at time.Time) *T {
	start := at.Truncate(r.grain).Unix()
	s := r.slot(start)
	switch {
	case s.start > start:
		return nil
	case s.start < start:
		*s = slot[T]{start: start}
	}
	return &s.counts
}

// Last returns the latest n intervals up to now, the oldest first, including empty ones.
func (r *Ring[T]) Last(now time.Time, n int) []Interval[T] {
	intervals := make([]Interval[T], n)
	end := now.Truncate(r.grain)
	for k := range intervals {
		start := end.Add(-time.Duration(n-1-k) * r.grain)
		intervals[k].Start = start.UTC()
		if s := r.slot(start.Unix()); s.start == start.Unix() {
			intervals[k].Counts = s.counts
		}
	}
	return intervals
}

func (r *Ring[T]) slot(start int64) *slot[T] {
	return &r.slots[int(start/int64(r.grain.Seconds()))%len(r.slots)]
}
