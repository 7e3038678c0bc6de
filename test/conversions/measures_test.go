package conversions

import (
	"cmp"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/convert/equality"
	"github.com/quaymaster/quaymaster/workload"
)

// TestFolder converts and compares a hundred policies, each for as many objects as the command does: a minute is enough on two
// cores.
func TestFolder(t *testing.T) {
	if os.Getenv("QUAYMASTER_LONG") == "" {
		t.Skip("it takes a minute; set QUAYMASTER_LONG")
	}
	carried := slices.DeleteFunc(corpus(t), func(c converted) bool { return c.pair.Result == nil })
	var folder []workload.Object
	for i := range 100 {
		folder = append(folder, carried[i%len(carried)].pair.Source[0])
	}
	before := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(before)
	began := time.Now()
	each(len(folder), func(i int) {
		c := convert("folder", folder[i])
		if _, err := check(t.Context(), &c, equality.DefaultObjects, false); err != nil {
			t.Error(err)
		}
	})
	took := time.Since(began)
	t.Logf("100 policies are converted and compared in %s on two cores", took.Round(time.Millisecond))
	if took > time.Minute {
		t.Errorf("it took %s, want less than a minute", took)
	}
}

// cpuTime is the CPU time of this process.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestTimes compares the time of evaluation of each policy with that of its result: the median is no slower, and none
// takes twice the time. The slowest ten are listed.
func TestTimes(t *testing.T) {
	if os.Getenv("QUAYMASTER_LONG") == "" {
		t.Skip("figures of a machine that others use say little; set QUAYMASTER_LONG")
	}
	carried := slices.DeleteFunc(corpus(t), func(c converted) bool { return c.pair.Result == nil })
	type ratio struct {
		name           string
		of             float64
		source, result time.Duration
	}
	var all []ratio
	for i := range carried {
		c := &carried[i]
		options := equality.Options{Source: c.pair.Source, Result: c.pair.Result, Objects: 400, Seed: 1}
		source, result, err := equality.Times(t.Context(), options, 5, cpuTime)
		if err == nil && float64(result) > 1.5*float64(source) { // more rounds: one with a garbage collection alone decides otherwise
			source, result, err = equality.Times(t.Context(), options, 40, cpuTime)
		}
		if err != nil {
			t.Errorf("%s: %v", c.name(), err)
			continue
		}
		all = append(all, ratio{c.name(), float64(result) / float64(source), source, result})
	}
	slices.SortFunc(all, func(a, b ratio) int { return cmp.Compare(b.of, a.of) })
	for _, one := range all[:min(10, len(all))] {
		t.Logf("%.2f: %s (%s, was %s)", one.of, one.name, one.result, one.source)
	}
	t.Logf("the median of %d is %.2f", len(all), all[len(all)/2].of)
	if all[len(all)/2].of > 1 || all[0].of > 2 {
		t.Errorf("the median is %.2f, want at most 1; the most is %.2f, want at most 2", all[len(all)/2].of, all[0].of)
	}
}
