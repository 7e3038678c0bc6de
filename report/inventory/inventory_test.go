package inventory_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/workload"
)

func TestNewRefuses(t *testing.T) {
	if _, err := inventory.New(inventory.Options{}); err == nil {
		t.Error("an inventory without a replica was made")
	}
}

// TestSinkOfOutcomes: the gate's decisions arrive by Take, and Take never waits.
func TestSinkOfOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, err := inventory.New(inventory.Options{Replica: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ref, err := image.Parse("registry.example/shop/web:1")
		if err != nil {
			t.Fatal(err)
		}
		decided := report.Decided{Occasion: admitted(time.Now()), Outcome: gate.Outcome{
			Result: gate.Allow, Subject: &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web"},
			Verdicts: []gate.Verdict{{Image: policy.Image{Ref: ref, Container: "web"}, Result: gate.Allow}},
		}}
		for range 2000 { // no reader runs yet
			known.Take(decided)
		}
		left := known.Dropped()
		if left == 0 || left >= 2000 {
			t.Errorf("%d were left out: the queue is endless, or has no place", left)
		}
		go known.Run(t.Context())
		synctest.Wait()
		got := images(t, known, inventory.ImageQuery{})
		if len(got) != 1 || got[0].Verdict != inventory.Unchecked || got[0].Workloads != 1 || got[0].Pods != 1 {
			t.Errorf("%+v", got)
		}
		if page, err := known.Decisions(inventory.DecisionQuery{}); err != nil || int64(page.Total) != min(2000-left, inventory.MaxDecisions) {
			t.Errorf("%d decisions, %v", page.Total, err)
		}
	})
}

// TestLargeObjects: decisions about large objects fill the queue sooner than others do.
func TestLargeObjects(t *testing.T) {
	large, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + strings.Repeat("x", 2<<20) + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		reason string
		object workload.Object
		drops  bool
	}{{"large", large, true}, {"small", workload.Object{}, false}} {
		known, err := inventory.New(inventory.Options{Replica: "a"})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 { // no reader runs
			known.Take(report.Decided{Outcome: gate.Outcome{Object: row.object}})
		}
		if drops := known.Dropped() > 0; drops != row.drops {
			t.Errorf("%s: %d of 100 are dropped", row.reason, known.Dropped())
		}
	}
}

// TestDefect: what cannot be read for a defect is counted, and what comes after it is
// taken in.
func TestDefect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, err := inventory.New(inventory.Options{Replica: "a"})
		if err != nil {
			t.Fatal(err)
		}
		decided := report.Decided{Occasion: admitted(time.Now()), Outcome: gate.Outcome{
			Result: gate.Allow, Subject: &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web"},
		}}
		broken := decided
		broken.Outcome.Verdicts = []gate.Verdict{{Decisions: []policy.Decision{{Result: policy.Pass}}}} // of no check
		known.Take(broken)
		known.Take(decided)
		go known.Run(t.Context())
		synctest.Wait()
		if page, err := known.Decisions(inventory.DecisionQuery{}); err != nil || page.Total != 1 || known.Dropped() != 1 {
			t.Errorf("%d decisions and %d left out, %v", page.Total, known.Dropped(), err)
		}
	})
}

// TestVerdicts: the word for each image and object.
func TestVerdicts(t *testing.T) {
	good, bad := proved("r.example/good:1", keyA), unsigned("r.example/bad:1")
	audited := unsigned("r.example/audited:1")
	audited.Result, audited.Decisions[0].Effect = gate.Allow, report.EffectWarn
	overridden := unsigned("r.example/overridden:1")
	overridden.Result, overridden.Override, overridden.Decisions[0].Effect = gate.Allow, "ImageOverride/x", report.EffectWarn
	allowedByHand := report.Image{Reference: "r.example/by-hand:1", Result: gate.Allow, Override: "ImageOverride/x"}
	unmatched := report.Image{Reference: "r.example/unmatched:1", Result: gate.Allow}
	away := report.Image{Reference: "r.example/away:1", Result: gate.Error, Matched: true}
	for _, row := range []struct {
		reason string
		image  report.Image
		want   inventory.Verdict
	}{
		{"everything is proved", good, inventory.Allowed},
		{"a policy forbids it", bad, inventory.Denied},
		{"a failure under audit", audited, inventory.Warned},
		{"an override outweighs a failure", overridden, inventory.Warned},
		{"an override matches it, and no policy", allowedByHand, inventory.Allowed},
		{"no policy matches it", unmatched, inventory.Unchecked},
		{"it could not be verified", away, inventory.Errored},
	} {
		known, _ := newInventory(t)
		known.Add(admitted(begin), record(row.image.Result, row.image), podOf("n", "o", 1))
		got := images(t, known, inventory.ImageQuery{})
		page, err := known.Decisions(inventory.DecisionQuery{})
		if err != nil || len(got) != 1 || got[0].Verdict != row.want || page.Items[0].Verdict != row.want {
			t.Errorf("%s: %+v, %+v, %v, want %s", row.reason, got, page.Items, err, row.want)
		}
	}
}

// TestWhereItRuns: workloads and pods are counted once, and go when they are gone.
func TestWhereItRuns(t *testing.T) {
	known, c := newInventory(t)
	web, next := proved("r.example/web:1", keyA), proved("r.example/web:2", keyA)
	for n := range 3 {
		known.Add(admitted(begin), record(gate.Allow, web), podOf("shop", "web", n))
		known.Add(scanned(begin), record(gate.Allow, web), podOf("shop", "web", n)) // the same again
	}
	known.Add(refused(begin), record(gate.Deny, unsigned("r.example/bad:1"), web), podOf("shop", "bad", 1))
	dry := admitted(begin)
	dry.DryRun = true
	known.Add(dry, record(gate.Allow, proved("r.example/dry:1", keyA)), podOf("shop", "dry", 1))

	at := func(reference string) inventory.Image {
		t.Helper()
		got := images(t, known, inventory.ImageQuery{Text: reference})
		if len(got) != 1 {
			t.Fatalf("%s: %+v", reference, got)
		}
		return got[0]
	}
	if got := at("web:1"); got.Workloads != 1 || got.Pods != 3 || got.Refused != 1 {
		t.Errorf("%+v", got)
	}
	if got := at("bad:1"); got.Workloads != 0 || got.Refused != 1 {
		t.Errorf("refused: %+v", got)
	}
	if got := images(t, known, inventory.ImageQuery{Text: "dry"}); len(got) != 0 {
		t.Errorf("nothing comes of a dry run: %+v", got)
	}
	if got, err := known.Decisions(inventory.DecisionQuery{Text: "dry"}); err != nil || got.Total != 0 {
		t.Errorf("nothing comes of a dry run: %+v, %v", got, err)
	}
	// One of three pods changes its image.
	known.Add(admitted(begin), record(gate.Allow, next), podOf("shop", "web", 0))
	if a, b := at("web:1"), at("web:2"); a.Pods != 2 || b.Pods != 1 {
		t.Errorf("%d and %d pods, want 2 and 1", a.Pods, b.Pods)
	}
	// A round that began later finds one pod of it.
	c.now = begin.Add(time.Hour)
	known.Add(scanned(c.now), record(gate.Allow, web), podOf("shop", "web", 1))
	pass(known, "v1", "ConfigMap", c.now) // another kind
	if got := at("web:1"); got.Pods != 2 {
		t.Errorf("a pass over another kind: %+v", got)
	}
	known.Passed("v1", "Pod", c.now, func(namespace string) bool { return namespace == "shop" })
	known.Drain()
	if got := at("web:1"); got.Pods != 2 {
		t.Errorf("a pass that left the namespace out: %+v", got)
	}
	pass(known, "v1", "Pod", c.now)
	if got := at("web:1"); got.Pods != 1 {
		t.Errorf("after the round: %+v", got)
	}
	if got := images(t, known, inventory.ImageQuery{Text: "web:2"}); len(got) != 0 {
		t.Errorf("nothing runs it any more: %+v", got)
	}
}

// TestQueriesDoNotChangeRunningImages: at the API and at endpoints other than webhooks, any
// client can send any object, and images as if they were elsewhere.
func TestQueriesDoNotChangeRunningImages(t *testing.T) {
	good, bad, elsewhere := proved("r.example/good:1", keyA), unsigned("r.example/bad:1"), proved("r.example/bad:1", keyB)
	unknown, found := unsigned("r.example/silent:1"), unsigned("r.example/silent:1")
	unknown.Digest = image.Digest{}
	asked := admitted(begin)
	asked.Endpoint, asked.Operation = "api", ""
	for _, c := range []struct {
		reason string
		o      report.Occasion
		says   report.Image
		about  report.Resource
		of     string
		// workloads run it, and are refused it; what its verdict is.
		workloads, refused int
		verdict            inventory.Verdict
	}{
		{"an update takes what ran before away", admitted(begin), good, podOf("shop", "web", 0), "bad:1", 0, 0, inventory.Denied},
		{"a query about the same pod does not", asked, good, podOf("shop", "web", 0), "bad:1", 1, 0, inventory.Denied},
		{"nor does the named image run anywhere", asked, good, podOf("shop", "web", 0), "good:1", 0, 0, inventory.Allowed},
		{"nor refused anywhere", report.Occasion{Time: begin, Process: report.ProcessAdmission, Endpoint: "api"}, bad, podOf("shop", "other", 0), "bad:1", 1, 0, inventory.Denied},
		{"another namespace's result does not hide a graver one", admitted(begin), elsewhere, podOf("other", "web", 0), "bad:1", 2, 0, inventory.Denied},
		{"and replaces it in the same workload", admitted(begin), elsewhere, podOf("shop", "web", 0), "bad:1", 1, 0, inventory.Allowed},
		{"and not where it was only asked for", asked, elsewhere, podOf("other", "web", 0), "bad:1", 1, 0, inventory.Denied},
		{"a digest that was found takes the place of none", admitted(begin), found, podOf("shop", "silent", 0), "silent:1", 1, 0, inventory.Denied},
		{"a query does not change the running image", asked, found, podOf("shop", "other", 0), "shop/silent", 1, 0, inventory.Denied},
	} {
		known, _ := newInventory(t)
		known.Add(scanned(begin), record(gate.Deny, bad), podOf("shop", "web", 0))
		known.Add(scanned(begin), record(gate.Deny, unknown), podOf("shop", "silent", 0))
		known.Add(c.o, record(gate.Allow, c.says), c.about)
		got := images(t, known, inventory.ImageQuery{Text: c.of})
		if len(got) != 1 || got[0].Workloads != c.workloads || got[0].Refused != c.refused || got[0].Verdict != c.verdict {
			t.Errorf("%s: %+v", c.reason, got)
		}
	}
}

// pass reports the end of a pass, and waits until it is processed.
func pass(known *inventory.Inventory, apiVersion, kind string, began time.Time) {
	known.Passed(apiVersion, kind, began, nil)
	known.Drain()
}

// TestUnknownDigest: an unresolved image is the same as the one that it resolves to later.
func TestUnknownDigest(t *testing.T) {
	known, _ := newInventory(t)
	away := report.Image{Reference: "r.example/web:1", Written: "r.example/web:1", Result: gate.Error, Matched: true}
	known.Add(refused(begin), record(gate.Error, away), podOf("n", "o", 1))
	known.Add(admitted(begin), record(gate.Allow, proved("r.example/web:1", keyA)), podOf("n", "o", 1))
	if got := images(t, known, inventory.ImageQuery{}); len(got) != 1 || got[0].Digest == "" || got[0].Verdict != inventory.Allowed {
		t.Errorf("%+v", got)
	}
	// The same bytes in another repository are another image: policies may say otherwise.
	other := proved("r.example/web:1", keyA)
	other.Reference = "mirror.example/web:1"
	known.Add(admitted(begin), record(gate.Allow, other), podOf("n", "p", 1))
	if got := images(t, known, inventory.ImageQuery{}); len(got) != 2 || got[0].ID == got[1].ID {
		t.Errorf("%+v", got)
	}
}

// TestDetails: the record comes back as it was, without secrets.
func TestDetails(t *testing.T) {
	known, _ := newInventory(t)
	web := proved("r.example/web:1", keyA)
	web.Mirror = &report.Mirror{Name: "RegistryMirror/hub[0]", Target: "m.example/web:1", PullSecrets: []string{"the-secret"}}
	known.Add(admitted(begin), record(gate.Allow, web), podOf("shop", "web", 1))
	id := images(t, known, inventory.ImageQuery{})[0].ID
	got, ok := known.Image(id)
	if !ok || !strings.Contains(string(got.Record), keyA) || !strings.Contains(string(got.Record), "m.example/web:1") || len(got.Uses) != 1 || got.Uses[0].Name != "web" {
		t.Errorf("%+v", got)
	}
	if strings.Contains(string(got.Record), "the-secret") {
		t.Error("the name of a pull secret is shown")
	}
	if byDigest, ok := known.Image(digest("r.example/web:1").String()); !ok || byDigest.ID != id {
		t.Errorf("by digest: %+v", byDigest)
	}
	if _, ok := known.Image("0000"); ok {
		t.Error("an unknown image is found")
	}
}

// TestEvidenceIsRenewed: a changed verdict counts at once, an equal one after a minute.
func TestEvidenceIsRenewed(t *testing.T) {
	known, _ := newInventory(t)
	web := proved("r.example/web:1", keyA)
	for _, row := range []struct {
		reason string
		image  report.Image
		after  time.Duration
		want   time.Duration // when the evidence was made
	}{
		{"the first", web, 0, 0},
		{"nothing changed", web, time.Second, 0},
		{"nothing changed for a minute", web, time.Minute, time.Minute},
		{"another verdict", unsigned("r.example/web:1"), time.Minute + time.Second, time.Minute + time.Second},
	} {
		known.Add(admitted(begin.Add(row.after)), record(row.image.Result, row.image), podOf("n", "o", 1))
		got, _ := known.Image(images(t, known, inventory.ImageQuery{})[0].ID)
		if !got.DecidedAt.Equal(begin.Add(row.want)) {
			t.Errorf("%s: made %s, want %s", row.reason, got.DecidedAt, begin.Add(row.want))
		}
	}
}
