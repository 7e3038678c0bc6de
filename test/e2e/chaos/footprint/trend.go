package footprint

import (
	"errors"
	"slices"
	"time"
)

// Point is one reading, at a time since the first.
type Point struct {
	At    time.Duration
	Value float64
}

// Bound is what may be gained over all that was measured: Absolute, or Share of the median,
// whatever is more.
type Bound struct{ Absolute, Share float64 }

// Trend is what readings come to.
//
// Memory of a program with a garbage collector goes up and down all the time. What matters is
// the floor that it comes back to: the readings are cut into stretches, of each the lowest
// counts, and a line is laid through these by the median of all slopes between two of them
// (Theil and Sen), which a few stretches that are not like the others do not move.
type Trend struct {
	Low, Median, High float64
	// PerHour is the slope, and Growth the increase over the measured time.
	PerHour, Growth float64
}

// stretches are how many parts the time is cut into, each with at least perStretch readings.
const stretches, perStretch = 20, 3

// TrendOf fits a trend to readings, which are in their order.
func TrendOf(points []Point) (Trend, error) {
	if len(points) < stretches*perStretch {
		return Trend{}, errors.New("too few readings for a trend")
	}
	first, last := points[0].At, points[len(points)-1].At
	if last <= first {
		return Trend{}, errors.New("the readings are of no time")
	}
	values := make([]float64, len(points))
	floors := make([]Point, 0, stretches)
	for i, p := range points {
		values[i] = p.Value
		stretch := i * stretches / len(points)
		if stretch == len(floors) {
			floors = append(floors, p)
		} else if floor := &floors[stretch]; p.Value < floor.Value {
			*floor = p
		}
	}
	slices.Sort(values)
	t := Trend{Low: values[0], Median: values[len(values)/2], High: values[len(values)-1]}
	slope := theilSen(floors)
	t.PerHour, t.Growth = slope*time.Hour.Seconds(), slope*(last-first).Seconds()
	return t, nil
}

// theilSen is the median slope, per second.
func theilSen(points []Point) float64 {
	var slopes []float64
	for i, a := range points {
		for _, b := range points[i+1:] {
			if b.At > a.At {
				slopes = append(slopes, (b.Value-a.Value)/(b.At-a.At).Seconds())
			}
		}
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2]
}

// Exceeds reports whether more was gained than is allowed.
func (t Trend) Exceeds(b Bound) bool { return t.Growth > max(b.Absolute, b.Share*t.Median) }
