package footprint_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/footprint"
)

// readings of twenty minutes, one each five seconds.
func readings(value func(seconds float64, r *rand.Rand) float64) []footprint.Point {
	r := rand.New(rand.NewPCG(1, 2))
	points := make([]footprint.Point, 240)
	for i := range points {
		at := time.Duration(i) * 5 * time.Second
		points[i] = footprint.Point{At: at, Value: value(at.Seconds(), r)}
	}
	return points
}

func TestTrend(t *testing.T) {
	const mib = 1 << 20
	sawtooth := func(seconds float64, r *rand.Rand) float64 {
		return 60*mib + math.Mod(seconds, 35)*mib + r.Float64()*8*mib
	}
	bound := footprint.Bound{Absolute: 16 * mib, Share: 0.1}
	for _, row := range []struct {
		reason string
		value  func(seconds float64, r *rand.Rand) float64
		leaks  bool
	}{
		{"flat", func(float64, *rand.Rand) float64 { return 60 * mib }, false},
		{"restless, as with a garbage collector", sawtooth, false},
		{"restless, and one peak of a minute", func(s float64, r *rand.Rand) float64 {
			if s > 600 && s < 660 {
				return 400 * mib
			}
			return sawtooth(s, r)
		}, false},
		{"it falls", func(s float64, r *rand.Rand) float64 { return sawtooth(s, r) - s*mib/60 }, false},
		{"a leak of a MiB a minute under the unrest", func(s float64, r *rand.Rand) float64 { return sawtooth(s, r) + s*mib/60 }, true},
		{"a leak that began halfway", func(s float64, r *rand.Rand) float64 { return sawtooth(s, r) + max(0, s-600)*mib/10 }, true},
	} {
		got, err := footprint.TrendOf(readings(row.value))
		if err != nil || got.Exceeds(bound) != row.leaks {
			t.Errorf("%s: %+v, %v; want a leak: %t", row.reason, got, err, row.leaks)
		}
	}
}

// TestCounts: goroutines and descriptors are small whole numbers, where a few more matter.
func TestCounts(t *testing.T) {
	bound := footprint.Bound{Absolute: 10}
	noisy := func(_ float64, r *rand.Rand) float64 { return 120 + float64(r.IntN(30)) }
	if got, err := footprint.TrendOf(readings(noisy)); err != nil || got.Exceeds(bound) {
		t.Errorf("noise is taken for a leak: %+v, %v", got, err)
	}
	leaking := func(s float64, r *rand.Rand) float64 { return noisy(s, r) + math.Floor(s/60) }
	if got, err := footprint.TrendOf(readings(leaking)); err != nil || !got.Exceeds(bound) || got.PerHour < 40 || got.PerHour > 80 {
		t.Errorf("one a minute is not found: %+v, %v", got, err)
	}
}

func TestTooFew(t *testing.T) {
	for _, points := range [][]footprint.Point{nil, readings(func(float64, *rand.Rand) float64 { return 1 })[:10], make([]footprint.Point, 100)} {
		if got, err := footprint.TrendOf(points); err == nil {
			t.Errorf("%d readings have the trend %+v", len(points), got)
		}
	}
}
