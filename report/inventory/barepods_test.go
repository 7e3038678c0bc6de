package inventory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
)

// TestPodsOfNoWorkload: where no scan reports which of them are gone, the last ones are kept.
// Pods of a scan, and of a workload, stay next to any number of them.
func TestPodsOfNoWorkload(t *testing.T) {
	const more = 100
	barePod := func(n int) report.Resource {
		return report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "jobs", Name: fmt.Sprint("run-", n), UID: fmt.Sprint(n)}
	}
	image := func(n int) report.Image { return proved(fmt.Sprintf("r.example/job:%d", n/100), keyA) }
	known, _ := newInventory(t)
	known.Add(admitted(begin), record(gate.Allow, image(0)), podOf("shop", "web", 1))
	known.Add(admitted(begin), record(gate.Allow, image(0)), barePod(-1))
	known.Add(scanned(begin), record(gate.Allow, image(0)), barePod(-1))
	for n := range inventory.MaxBarePods {
		known.Add(admitted(begin), record(gate.Allow, image(n)), barePod(n))
		known.Add(admitted(begin), record(gate.Allow, image(n)), barePod(n)) // the same again
	}
	running := func() (all, first int) {
		t.Helper()
		for _, each := range images(t, known, inventory.ImageQuery{Page: inventory.Page{Limit: inventory.MaxPage}}) {
			all += each.Workloads
			if each.Reference == image(0).Reference {
				first = each.Workloads
			}
		}
		return all, first
	}
	if all, first := running(); all != inventory.MaxBarePods+2 || first != 102 {
		t.Fatalf("up to the bound: %d workloads, %d of the first image; want %d and 102", all, first, inventory.MaxBarePods+2)
	}
	for n := range more {
		known.Add(admitted(begin), record(gate.Allow, image(inventory.MaxBarePods+n)), barePod(inventory.MaxBarePods+n))
	}
	if all, first := running(); all != inventory.MaxBarePods+2 || first != 2 {
		t.Errorf("beyond it: %d workloads, %d of the first image; want %d, and of the first the workload and the scanned pod", all, first, inventory.MaxBarePods+2)
	}
	if d, ok := known.Image(image(0).Digest.String()); !ok || d.UsesLeftOut != 100 {
		t.Errorf("100 pods of the first image went, and %d are counted", d.UsesLeftOut)
	}
	all, _ := running()
	found := barePod(-1)
	known.Add(refused(begin), record(gate.Deny, image(0)), found) // a refused request for a running pod
	for n := range inventory.MaxBarePods {
		known.Add(refused(begin), record(gate.Deny, unsigned(fmt.Sprintf("r.example/bad:%d", n/100))), barePod(10*inventory.MaxBarePods+n))
	}
	if now, first := running(); now != all || first != 2 {
		t.Errorf("refused pods drive out what runs: %d workloads are left of %d, and %d of the first image", now, all, first)
	}
	for n := range inventory.MaxBarePods {
		known.Add(admitted(begin), record(gate.Allow, image(n)), barePod(20*inventory.MaxBarePods+n))
	}
	if _, first := running(); first != 102 {
		t.Errorf("%d workloads of the first image, want those that came last, the Deployment's and what a scan found", first)
	}
	known.Add(scanned(begin.Add(time.Minute)), record(gate.Allow, image(0)), found)
	known.Passed("v1", "Pod", begin.Add(time.Minute), nil)
	known.Drain()
	if d, ok := known.Image(image(0).Digest.String()); !ok || d.UsesLeftOut != 0 {
		t.Errorf("a scan has listed all pods, and %d are left out", d.UsesLeftOut)
	}
}

// TestImageOfDroppedPods: a scan of another kind does not remove it, a scan of pods without
// it does.
func TestImageOfDroppedPods(t *testing.T) {
	known, _ := newInventory(t)
	barePod := func(n int) report.Resource {
		return report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "jobs", Name: fmt.Sprint("run-", n), UID: fmt.Sprint(n)}
	}
	for n := range inventory.MaxBarePods + 1 {
		reference := "r.example/many:1"
		if n == 0 {
			reference = "r.example/first:1"
		}
		known.Add(admitted(begin), record(gate.Allow, proved(reference, keyA)), barePod(n))
	}
	for _, step := range []struct {
		apiVersion, kind string
		stays            bool
	}{{"apps/v1", "Deployment", true}, {"v1", "Pod", false}} {
		known.Passed(step.apiVersion, step.kind, begin.Add(time.Minute), nil)
		known.Drain()
		if _, ok := known.Image(digest("r.example/first:1").String()); ok != step.stays {
			t.Errorf("after a scan of %s: known %t, want %t", step.kind, ok, step.stays)
		}
	}
}

// TestUnusedImagesAreEvictedFirst: a client that requests more images than are kept, and is
// refused, evicts no running image.
func TestUnusedImagesAreEvictedFirst(t *testing.T) {
	known, _ := newInventory(t)
	known.Add(admitted(begin), record(gate.Allow, proved("r.example/shop:1", keyA)), podOf("shop", "web", 1))
	for n := range inventory.MaxImages + 10 {
		known.Add(refused(begin), record(gate.Deny, unsigned(fmt.Sprintf("r.example/bad:%d", n))), podOf("night", "job", n))
	}
	if _, ok := known.Image(digest("r.example/shop:1").String()); !ok {
		t.Error("the image that runs is forgotten")
	}
	if _, ok := known.Image(digest("r.example/bad:0").String()); ok {
		t.Error("the first image that nothing ran is still known")
	}
}
