package inventory

import "time"

const (
	minutes = 24 * 60
	hours   = 7 * 24
)

// history counts decisions by minute for the last day, and by hour for the last week. Its zero
// value is empty.
type history struct {
	byMinute [minutes]slot
	byHour   [hours]slot
}

type slot struct {
	start int64 // in seconds; a different value means that the counts are of an earlier cycle
	tally Tally
}

func (h *history) count(at time.Time, v Verdict) {
	countIn(h.byMinute[:], at, time.Minute, v)
	countIn(h.byHour[:], at, time.Hour, v)
}

func countIn(slots []slot, at time.Time, grain time.Duration, v Verdict) {
	start := at.Truncate(grain).Unix()
	s := &slots[int(start/int64(grain.Seconds()))%len(slots)]
	switch {
	case s.start > start:
		return // too old for the ring
	case s.start < start:
		*s = slot{start: start}
	}
	s.tally.Add(v)
}

// last returns the latest n slots of a grain up to now, the oldest first, including empty ones.
func last(slots []slot, now time.Time, grain time.Duration, n int) []Moment {
	moments := make([]Moment, n)
	end := now.Truncate(grain)
	for k := range moments {
		start := end.Add(-time.Duration(n-1-k) * grain)
		moments[k].Start = start.UTC()
		s := &slots[int(start.Unix()/int64(grain.Seconds()))%len(slots)]
		if s.start == start.Unix() {
			moments[k].Tally = s.tally
		}
	}
	return moments
}

// merged joins so many moments each into one.
func merged(moments []Moment, several int) []Moment {
	var out []Moment
	for at := 0; at < len(moments); at += several {
		sum := Moment{Start: moments[at].Start}
		for _, m := range moments[at:min(at+several, len(moments))] {
			sum.Allowed += m.Allowed
			sum.Warned += m.Warned
			sum.Unchecked += m.Unchecked
			sum.Denied += m.Denied
			sum.Errored += m.Errored
		}
		out = append(out, sum)
	}
	return out
}
