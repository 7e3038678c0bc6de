package report_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/workload"
)

// TestMemoryLimit: large objects fill a queue sooner than small ones do, the old state counts,
// and what left makes room again.
func TestMemoryLimit(t *testing.T) {
	large, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	small := report.Decided{}
	heavy := report.Decided{Outcome: gate.Outcome{Object: large}}
	old := report.Decided{Outcome: gate.Outcome{Subject: &policy.Subject{OldObject: policy.ContentFrom(large)}}}
	if report.Weight(heavy) < 1<<20 || report.Weight(old) < 1<<20 || report.Weight(small) > 10<<10 {
		t.Fatalf("weights %d, %d and %d", report.Weight(heavy), report.Weight(old), report.Weight(small))
	}
	limit := report.NewMemoryLimit(2 * report.Weight(heavy))
	for i, want := range []bool{true, true, false} {
		if got := limit.Reserve(heavy); got != want {
			t.Errorf("large object %d enters: %t", i, got)
		}
	}
	if limit.Reserve(small) {
		t.Error("a small object enters a full room")
	}
	limit.Release(heavy)
	if !limit.Reserve(small) {
		t.Error("what left made no room")
	}
	tiny := report.NewMemoryLimit(1)
	if !tiny.Reserve(heavy) || tiny.Reserve(small) {
		t.Error("a room that is too small for one takes it alone")
	}
}
