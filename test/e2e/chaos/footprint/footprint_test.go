package footprint_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/footprint"
)

// TestJudge: a soak in which one reading of one gateway grows is not flat.
func TestJudge(t *testing.T) {
	series := func(leak float64) [][]footprint.At {
		all := make([][]footprint.At, 2)
		for i := range all {
			for n := range 120 {
				r := footprint.Reading{Goroutines: 100 + float64(n%7), Files: 40, Memory: 60<<20 + float64(n%9)*(1<<20)}
				if i == 1 {
					r.Goroutines += leak * float64(n)
				}
				all[i] = append(all[i], footprint.At{After: time.Duration(n) * 5 * time.Second, Reading: r})
			}
		}
		return all
	}
	said := &strings.Builder{}
	if grown, err := footprint.Judge(said, series(0), 2*time.Minute); err != nil || grown != 0 {
		t.Errorf("flat: %d grow, %v\n%s", grown, err, said)
	}
	said.Reset()
	if grown, err := footprint.Judge(said, series(0.2), 2*time.Minute); err != nil || grown != 1 || !strings.Contains(said.String(), "GROWS") {
		t.Errorf("a leak: %d grow, %v\n%s", grown, err, said)
	}
	if _, err := footprint.Judge(said, series(0), time.Hour); err == nil {
		t.Error("nothing was read, and it is flat")
	}
}

func TestIsBack(t *testing.T) {
	before := footprint.Reading{Goroutines: 150, Files: 20, Memory: 30 << 20}
	for _, row := range []struct {
		reason string
		now    footprint.Reading
		want   bool
	}{
		{"as before", before, true},
		{"less", footprint.Reading{}, true},
		{"goroutines stay", footprint.Reading{Goroutines: 250, Files: 20, Memory: 30 << 20}, false},
		{"files stay open", footprint.Reading{Goroutines: 150, Files: 80, Memory: 30 << 20}, false},
		{"memory stays", footprint.Reading{Goroutines: 150, Files: 20, Memory: 130 << 20}, false},
	} {
		if got := row.now.IsBack(before); got != row.want {
			t.Errorf("%s: %t", row.reason, got)
		}
	}
}
