package inventory_test

import (
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
)

// TestPodsOfNoWorkload: where no scan tells which of them are gone, the last ones are kept;
// what a scan has found, and what belongs to a workload, stays beside any number of them.
func TestPodsOfNoWorkload(t *testing.T) {
	const more = 100
	lonely := func(n int) report.Resource {
		return report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "jobs", Name: fmt.Sprint("run-", n), UID: fmt.Sprint(n)}
	}
	image := func(n int) report.Image { return proved(fmt.Sprintf("r.example/job:%d", n/100), keyA) }
	known, _ := newInventory(t)
	known.Add(admitted(begin), record(gate.Allow, image(0)), podOf("shop", "web", 1))
	known.Add(admitted(begin), record(gate.Allow, image(0)), lonely(-1))
	known.Add(scanned(begin), record(gate.Allow, image(0)), lonely(-1))
	for n := range inventory.MaxLone {
		known.Add(admitted(begin), record(gate.Allow, image(n)), lonely(n))
		known.Add(admitted(begin), record(gate.Allow, image(n)), lonely(n)) // the same again
	}
	running := func() (all, first int) {
		t.Helper()
		for _, each := range images(t, known, inventory.ImageQuery{}) {
			all += each.Workloads
			if each.Reference == image(0).Reference {
				first = each.Workloads
			}
		}
		return all, first
	}
	if all, first := running(); all != inventory.MaxLone+2 || first != 102 {
		t.Fatalf("up to the bound: %d workloads, %d of the first image; want %d and 102", all, first, inventory.MaxLone+2)
	}
	for n := range more {
		known.Add(admitted(begin), record(gate.Allow, image(inventory.MaxLone+n)), lonely(inventory.MaxLone+n))
	}
	if all, first := running(); all != inventory.MaxLone+2 || first != 2 {
		t.Errorf("beyond it: %d workloads, %d of the first image; want %d, and of the first the workload and what was scanned", all, first, inventory.MaxLone+2)
	}
	known.Add(scanned(begin), record(gate.Allow, image(100)), lonely(100)) // found in time
	for n := range inventory.MaxLone {
		known.Add(refused(begin), record(gate.Deny, unsigned(fmt.Sprintf("r.example/bad:%d", n/100))), lonely(10*inventory.MaxLone+n))
	}
	if all, _ := running(); all != 3 {
		t.Errorf("refused pods drive out lone ones, and no others: %d workloads are left, want 3", all)
	}
}
