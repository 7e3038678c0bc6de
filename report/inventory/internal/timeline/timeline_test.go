package timeline_test

import (
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report/inventory/internal/timeline"
)

// TestRing counts in the interval of each time, and evicts the oldest interval.
func TestRing(t *testing.T) {
	begin := time.Date(2026, 3, 14, 9, 30, 0, 0, time.UTC)
	for _, row := range []struct {
		reason string
		at     []time.Duration // after begin
		now    time.Duration
		want   [3]int // of the last three minutes
	}{
		{"nothing was counted", nil, 0, [3]int{}},
		{"two in one interval", []time.Duration{0, 59 * time.Second}, 0, [3]int{0, 0, 2}},
		{"one in each", []time.Duration{0, time.Minute, 2 * time.Minute}, 2 * time.Minute, [3]int{1, 1, 1}},
		{"an empty one between", []time.Duration{0, 2 * time.Minute}, 2 * time.Minute, [3]int{1, 0, 1}},
		{"a cycle later", []time.Duration{0, 3 * time.Minute}, 3 * time.Minute, [3]int{0, 0, 1}},
		{"too old for the ring", []time.Duration{3 * time.Minute, 0}, 3 * time.Minute, [3]int{0, 0, 1}},
		{"everything is long ago", []time.Duration{0}, time.Hour, [3]int{}},
	} {
		ring := timeline.New[int](time.Minute, 3)
		for _, after := range row.at {
			if counts := ring.At(begin.Add(after)); counts != nil {
				*counts++
			}
		}
		var got [3]int
		for n, each := range ring.Last(begin.Add(row.now), 3) {
			got[n] = each.Counts
			if want := begin.Add(row.now + time.Duration(n-2)*time.Minute); !each.Start.Equal(want) {
				t.Errorf("%s: the interval %d starts at %s, want %s", row.reason, n, each.Start, want)
			}
		}
		if got != row.want {
			t.Errorf("%s: %v, want %v", row.reason, got, row.want)
		}
	}
}
