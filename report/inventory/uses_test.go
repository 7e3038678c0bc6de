package inventory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
)

// audited is an image whose missing signature only warns.
func audited(reference string) report.Image {
	made := unsigned(reference)
	made.Result, made.Decisions[0].Effect = gate.Allow, report.EffectWarn
	return made
}

// TestOtherUsesDoNotHideAFailure: the state of a running image is the gravest of its uses, in the list,
// the overview and the results of policies.
func TestOtherUsesDoNotHideAFailure(t *testing.T) {
	const ref = "r.example/web:1"
	later := begin.Add(time.Minute)
	prod, dev := podOf("prod", "web", 1), podOf("dev", "web", 1)
	for _, row := range []struct {
		reason string
		then   func(known *inventory.Inventory)
		want   inventory.Verdict
		fails  int64
	}{
		{"nothing else", func(*inventory.Inventory) {}, inventory.Warned, 1},
		{"it passes in another namespace", func(known *inventory.Inventory) {
			known.Add(admitted(later), record(gate.Allow, proved(ref, keyA)), dev)
		}, inventory.Warned, 1},
		{"no policy matches it in another namespace", func(known *inventory.Inventory) {
			other := unmatched(ref)
			other.Digest = digest(ref)
			known.Add(scanned(later), record(gate.Unchecked, other), dev)
		}, inventory.Warned, 1},
		{"it is denied in another namespace", func(known *inventory.Inventory) {
			known.Add(scanned(later), record(gate.Deny, unsigned(ref)), dev)
		}, inventory.Denied, 1},
		{"it passes in the same workload", func(known *inventory.Inventory) {
			known.Add(scanned(later), record(gate.Allow, proved(ref, keyA)), prod)
		}, inventory.Allowed, 0},
		{"another container of the workload passes with it", func(known *inventory.Inventory) {
			known.Add(scanned(later), record(gate.Allow, audited(ref), proved(ref, keyA)), prod)
		}, inventory.Warned, 1},
		{"the workload runs another image, and it passes elsewhere", func(known *inventory.Inventory) {
			known.Add(admitted(later), record(gate.Allow, proved(ref, keyA)), dev)
			known.Add(admitted(later), record(gate.Allow, proved("r.example/next:1", keyA)), prod)
		}, inventory.Allowed, 0},
		{"a scan does not find the workload", func(known *inventory.Inventory) {
			known.Add(scanned(later), record(gate.Allow, proved(ref, keyA)), dev)
			pass(known, "v1", "Pod", later)
		}, inventory.Allowed, 0},
	} {
		known, _ := newInventory(t)
		known.Add(admitted(begin), record(gate.Allow, audited(ref)), prod)
		row.then(known)
		got := images(t, known, inventory.ImageQuery{Text: "web:1"})
		if len(got) != 1 || got[0].Verdict != row.want {
			t.Errorf("%s: %+v, want %s", row.reason, got, row.want)
			continue
		}
		overview, err := known.Overview(inventory.Day)
		if listed := err == nil && len(overview.Attention) == 1; listed != (row.want != inventory.Allowed) {
			t.Errorf("%s: needs attention: %t, %v", row.reason, listed, err)
		}
		policies := known.Policies()
		if len(policies) != 1 || policies[0].Images.Fail != row.fails {
			t.Errorf("%s: %+v, want %d failures", row.reason, policies, row.fails)
		}
		failed := images(t, known, inventory.ImageQuery{Text: "web:1", Policy: "ClusterPolicy/signed", Failed: true})
		if len(failed) != int(row.fails) {
			t.Errorf("%s: %d images fail the policy", row.reason, len(failed))
		}
		details, _ := known.Image(got[0].ID)
		if shown := strings.Contains(string(details.Record), "no signature was found"); shown != (row.fails > 0) {
			t.Errorf("%s: the record is %s", row.reason, details.Record)
		}
	}
}

// TestGraveUsesAreNotLeftOut: where an image has more uses than are kept, the gravest remain.
func TestGraveUsesAreNotLeftOut(t *testing.T) {
	const ref = "r.example/web:1"
	for _, row := range []struct {
		reason string
		last   report.Image
		want   inventory.Verdict
	}{
		{"a graver one", audited(ref), inventory.Warned},
		{"an equal one", proved(ref, keyA), inventory.Allowed},
	} {
		known, _ := newInventory(t)
		for n := range 500 {
			known.Add(admitted(begin), record(gate.Allow, proved(ref, keyA)), podOf("dev", fmt.Sprint("web-", n), 1))
		}
		known.Add(admitted(begin), record(gate.Allow, row.last), podOf("prod", "web", 1))
		got := images(t, known, inventory.ImageQuery{})
		if len(got) != 1 || got[0].Verdict != row.want || got[0].Workloads != 500 {
			t.Errorf("%s: %+v", row.reason, got)
			continue
		}
		if details, _ := known.Image(got[0].ID); details.UsesLeftOut != 1 {
			t.Errorf("%s: %d are left out", row.reason, details.UsesLeftOut)
		}
	}
}

// TestGraveResultsAreNotLeftOut: of more results than are kept, failures and errors remain.
func TestGraveResultsAreNotLeftOut(t *testing.T) {
	for _, row := range []struct {
		reason  string
		passing int
		last    policy.Result
		effect  report.Effect
		left    int
		fail    int64
		errored int64
	}{
		{"the 67th fails", 66, policy.Fail, report.EffectWarn, 3, 1, 0},
		{"the 67th is an error", 66, policy.Indeterminate, report.EffectWarn, 3, 0, 1},
		{"the 67th passes", 66, policy.Pass, report.EffectAllow, 3, 0, 0},
		{"all are kept", 63, policy.Fail, report.EffectWarn, 0, 1, 0},
	} {
		known, _ := newInventory(t)
		image := proved("r.example/web:1", keyA)
		one := image.Decisions[0]
		image.Decisions = nil
		for n := range row.passing {
			one.Policy.Name = fmt.Sprint("p", n)
			image.Decisions = append(image.Decisions, one)
		}
		one.Policy.Name, one.Result, one.Effect = "last", row.last, row.effect
		image.Decisions = append(image.Decisions, one)
		known.Add(admitted(begin), record(gate.Allow, image), podOf("shop", "web", 1))
		if image.Decisions[len(image.Decisions)-1].Policy.Name != "last" {
			t.Errorf("%s: the record that was handed in was changed", row.reason)
		}
		var fail, errored int64
		for _, p := range known.Policies() {
			fail, errored = fail+p.Images.Fail, errored+p.Images.Error
		}
		details, _ := known.Image(images(t, known, inventory.ImageQuery{})[0].ID)
		shown := strings.Contains(string(details.Record), `"name":"last"`)
		if fail != row.fail || errored != row.errored || details.ResultsLeftOut != row.left || shown != (row.last != policy.Pass) {
			t.Errorf("%s: %d fail, %d errors, %d left out, in the record: %t", row.reason, fail, errored, details.ResultsLeftOut, shown)
		}
		page, err := known.Decisions(inventory.DecisionQuery{})
		if err != nil {
			t.Fatal(err)
		}
		decision, _ := known.Decision(page.Items[0].ID)
		counted := strings.Contains(string(decision.Record), fmt.Sprintf(`"resultsLeftOut":%d`, row.left))
		if counted != (row.left > 0) || strings.Contains(string(decision.Record), `"name":"last"`) != shown {
			t.Errorf("%s: the decision has %s", row.reason, decision.Record)
		}
	}
}

// TestDigestElsewhere: a workload that runs an image without a policy stays in the list when another one's is
// resolved, and leaves it when its own is.
func TestDigestElsewhere(t *testing.T) {
	const ref = "r.example/web:1"
	later := begin.Add(time.Minute)
	for _, row := range []struct {
		reason string
		by     report.Occasion
		then   report.Resource
		beside bool // another container has the image without a policy
		want   int  // entries without a digest
	}{
		{"another workload is admitted", admitted(later), podOf("prod", "web", 1), false, 1},
		{"a scan finds another workload", scanned(later), podOf("prod", "web", 1), false, 1},
		{"another pod of the workload is admitted", admitted(later), podOf("dev", "web", 2), false, 0},
		{"a scan finds the workload", scanned(later), podOf("dev", "web", 1), false, 0},
		{"a scan finds the workload with two containers", scanned(later), podOf("dev", "web", 1), true, 1},
		{"a query names the workload", report.Occasion{Time: later, Process: report.ProcessAdmission, Endpoint: "api", Allowed: true}, podOf("dev", "web", 1), false, 1},
	} {
		known, _ := newInventory(t)
		known.Add(scanned(begin), record(gate.Unchecked, unmatched(ref)), podOf("dev", "web", 1))
		verified := []report.Image{proved(ref, keyA)}
		if row.beside {
			verified = append(verified, unmatched(ref))
		}
		known.Add(row.by, record(gate.Allow, verified...), row.then)
		without := 0
		for _, found := range images(t, known, inventory.ImageQuery{Text: "web:1"}) {
			if found.Digest == "" {
				without++
				if found.Workloads != 1 || found.Verdict != inventory.Unchecked {
					t.Errorf("%s: %+v", row.reason, found)
				}
			}
		}
		if without != row.want {
			t.Errorf("%s: %d entries without a digest, want %d", row.reason, without, row.want)
		}
	}
}
