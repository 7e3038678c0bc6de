package inventory

import (
	"time"

	"github.com/quaymaster/quaymaster/report/inventory/internal/timeline"
)

const (
	minutes = 24 * 60
	hours   = 7 * 24
)

// history counts decisions by minute for the last day, and by hour for the last week.
type history struct {
	byMinute, byHour *timeline.Ring[Tally]
}

func newHistory() history {
	return history{timeline.New[Tally](time.Minute, minutes), timeline.New[Tally](time.Hour, hours)}
}

func (h *history) count(at time.Time, v Verdict) {
	for _, ring := range []*timeline.Ring[Tally]{h.byMinute, h.byHour} {
		if tally := ring.At(at); tally != nil {
			tally.Add(v)
		}
	}
}

// over returns the moments of a span.
func (h *history) over(span Span, now time.Time) ([]Moment, int) {
	switch span {
	case Hour:
		return merged(h.byMinute.Last(now, 60), 1), 60
	case Week:
		return merged(h.byHour.Last(now, hours), 2), 2 * 60 * 60
	default:
		return merged(h.byMinute.Last(now, minutes), 15), 15 * 60
	}
}

// merged joins so many intervals each into one moment.
func merged(intervals []timeline.Interval[Tally], several int) []Moment {
	var out []Moment
	for at := 0; at < len(intervals); at += several {
		sum := Moment{Start: intervals[at].Start}
		for _, each := range intervals[at:min(at+several, len(intervals))] {
			sum.Allowed += each.Counts.Allowed
			sum.Warned += each.Counts.Warned
			sum.Unchecked += each.Counts.Unchecked
			sum.Denied += each.Counts.Denied
			sum.Errored += each.Counts.Errored
		}
		out = append(out, sum)
	}
	return out
}
