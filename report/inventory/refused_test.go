package inventory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
)

// unmatched is an image that no policy matches: its digest is not resolved then.
func unmatched(reference string) report.Image {
	return report.Image{Container: "c", Written: reference, Reference: reference, Result: gate.Unchecked}
}

// unchanged is an image that an update does not concern: it is not evaluated again.
func unchanged(reference string) report.Image {
	made := unmatched(reference)
	made.Result, made.Reasons = gate.Allow, []policy.Reason{{Code: policy.Unchanged, Message: "the object ran this image before the update"}}
	return made
}

// updated is a request to change an object, as kubectl debug sends it.
func updated(o report.Occasion) report.Occasion {
	o.Operation = "UPDATE"
	return o
}

// TestRefusedRequestsDoNotChangeRunningImages: the state of a running image is that of its workloads. An
// admitted request and a scan do replace it.
func TestRefusedRequestsDoNotChangeRunningImages(t *testing.T) {
	web := proved("r.example/web:1", keyA)
	resolved := unmatched("r.example/web:1")
	resolved.Digest = web.Digest
	denied, unresolved := unsigned("r.example/web:1"), web
	unresolved.Result, unresolved.Digest = gate.Error, image.Digest{}
	debug := unsigned("r.example/debug:1")
	later := begin.Add(time.Minute)
	for _, row := range []struct {
		reason  string
		o       report.Occasion
		result  gate.Result
		image   report.Image
		about   report.Resource
		verdict inventory.Verdict
		refused int
	}{
		{"a denied kubectl debug, whose update no rule for the image matches", updated(refused(later)), gate.Deny, unmatched("r.example/web:1"), podOf("shop", "web", 1), inventory.Allowed, 0},
		{"the same, with a digest", updated(refused(later)), gate.Deny, resolved, podOf("shop", "web", 1), inventory.Allowed, 0},
		{"the same, while the registry does not respond", updated(refused(later)), gate.Error, unresolved, podOf("shop", "web", 1), inventory.Allowed, 0},
		{"another pod of the workload is refused", refused(later), gate.Deny, denied, podOf("shop", "web", 2), inventory.Allowed, 0},
		{"another workload is refused", refused(later), gate.Deny, denied, podOf("other", "web", 1), inventory.Allowed, 1},
		{"another workload is refused, and no policy matches the image", refused(later), gate.Deny, resolved, podOf("other", "web", 1), inventory.Allowed, 1},
		{"an admitted update that does not concern it", updated(admitted(later)), gate.Allow, unchanged("r.example/web:1"), podOf("shop", "web", 1), inventory.Allowed, 0},
		{"a refused update that does not concern it", updated(refused(later)), gate.Deny, unchanged("r.example/web:1"), podOf("shop", "web", 1), inventory.Allowed, 0},
		{"an admitted update that no policy matches", updated(admitted(later)), gate.Unchecked, resolved, podOf("shop", "web", 1), inventory.Unchecked, 0},
		{"an admitted request under audit", admitted(later), gate.Allow, denied, podOf("shop", "web", 2), inventory.Denied, 0},
		{"a scan", scanned(later), gate.Deny, denied, podOf("shop", "web", 1), inventory.Denied, 0},
	} {
		known, _ := newInventory(t)
		known.Add(admitted(begin), record(gate.Allow, web), podOf("shop", "web", 1))
		known.Add(row.o, record(row.result, row.image, debug), row.about)
		got := images(t, known, inventory.ImageQuery{Text: "web:1"})
		if len(got) != 1 || got[0].Verdict != row.verdict || got[0].Refused != row.refused || got[0].Workloads == 0 || got[0].State() != inventory.Running {
			t.Errorf("%s: %+v", row.reason, got)
			continue
		}
		details, _ := known.Image(got[0].ID)
		if proof := strings.Contains(string(details.Record), keyA); proof != (row.verdict == inventory.Allowed) || (len(details.Signers) == 1) != proof || got[0].Cause != nil {
			t.Errorf("%s: %+v with the record %s", row.reason, got, details.Record)
		}
	}
}

// TestRefusedImages are shown apart from running ones, with the container that was the reason.
func TestRefusedImages(t *testing.T) {
	web, mail, side := proved("r.example/web:1", keyA), unsigned("r.example/mail:1"), proved("r.example/side:1", keyA)
	mail.Container = "mail"
	known, c := newInventory(t)
	known.Add(admitted(begin), record(gate.Allow, web), podOf("shop", "web", 1))
	known.Add(refused(begin.Add(time.Second)), record(gate.Deny, web, side, mail), podOf("shop", "mail", 1))
	asked := admitted(begin)
	asked.Operation = ""
	known.Add(asked, record(gate.Allow, proved("r.example/asked:1", keyA)), report.Resource{Kind: "Pod", Name: "image"})

	for _, row := range []struct {
		reason, text string
		state        inventory.State
		verdict      inventory.Verdict
		cause        string // the container
	}{
		{"it runs, and was refused elsewhere", "web:1", inventory.Running, inventory.Allowed, ""},
		{"it is the reason", "mail:1", inventory.Refused, inventory.Denied, "mail"},
		{"it is allowed, and another container is the reason", "side:1", inventory.Refused, inventory.Allowed, "mail"},
		{"a request for the image alone", "asked:1", inventory.Other, inventory.Allowed, ""},
	} {
		got := images(t, known, inventory.ImageQuery{Text: row.text, State: row.state})
		if len(got) != 1 || got[0].State() != row.state || got[0].Verdict != row.verdict || (got[0].Cause == nil) != (row.cause == "") {
			t.Fatalf("%s: %+v", row.reason, got)
		}
		if got[0].Cause != nil && (got[0].Cause.Container != row.cause || got[0].Cause.Code != "unsigned" || got[0].Cause.Policy != "ClusterPolicy/signed") {
			t.Errorf("%s: %+v", row.reason, got[0].Cause)
		}
		for _, other := range inventory.States() {
			if other != row.state && len(images(t, known, inventory.ImageQuery{Text: row.text, State: other})) > 0 {
				t.Errorf("%s: it is among the %s ones as well", row.reason, other)
			}
		}
	}
	page, err := known.Images(inventory.ImageQuery{State: inventory.Refused, Sort: inventory.ByState})
	if err != nil || page.Total != 2 || page.Verdicts != (inventory.Tally{Allowed: 1, Denied: 1}) || page.States.Running != 1 || page.States.Refused != 2 || page.States.Other != 1 {
		t.Errorf("the page of refused images: %+v, %v", page, err)
	}
	if _, err := known.Images(inventory.ImageQuery{State: "fine"}); err == nil {
		t.Error("a state that does not exist is accepted")
	}
	overview, err := known.Overview(inventory.Day)
	if err != nil || overview.Apart.Running != (inventory.Tally{Allowed: 1}) || overview.Apart.Refused != (inventory.Tally{Allowed: 1, Denied: 1}) ||
		overview.Apart.Other != (inventory.Tally{Allowed: 1}) || overview.Apart.RunningWorkloads != 1 || overview.Apart.RefusedWorkloads != 1 || len(overview.Refused) != 2 {
		t.Errorf("the overview: %+v, %v", overview, err)
	}
	all := images(t, known, inventory.ImageQuery{Sort: inventory.ByState})
	if len(all) != 4 || all[0].State() != inventory.Running || all[1].Verdict != inventory.Denied || all[3].State() != inventory.Other {
		t.Errorf("sorted by state: %+v", all)
	}

	// Once no workload runs it, only the refusal is known.
	known.Add(refused(begin.Add(2*time.Second)), record(gate.Deny, unsigned("r.example/web:1")), podOf("staging", "web", 1))
	c.now = begin.Add(time.Hour)
	pass(known, "v1", "Pod", c.now)
	if got := images(t, known, inventory.ImageQuery{Text: "web:1"}); len(got) != 1 || got[0].Verdict != inventory.Denied || got[0].State() != inventory.Refused {
		t.Errorf("after its workload was deleted: %+v", got)
	}
	// A query of any client does not make it look better.
	known.Add(asked, record(gate.Allow, web), report.Resource{Kind: "Pod", Name: "image"})
	if got := images(t, known, inventory.ImageQuery{Text: "web:1"}); len(got) != 1 || got[0].Verdict != inventory.Denied {
		t.Errorf("after a query: %+v", got)
	}
}

// TestUnresolvedRunningImage: a request for another workload that resolves the image does not evict the running one.
func TestUnresolvedRunningImage(t *testing.T) {
	for _, row := range []struct {
		reason string
		o      report.Occasion
		want   int // running images
	}{
		{"refused", refused(begin), 1},
		{"admitted", admitted(begin), 2},
	} {
		known, _ := newInventory(t)
		known.Add(admitted(begin), record(gate.Unchecked, unmatched("r.example/web:1")), podOf("shop", "web", 1))
		known.Add(row.o, record(gate.Allow, proved("r.example/web:1", keyA)), podOf("other", "web", 1))
		if got := images(t, known, inventory.ImageQuery{State: inventory.Running}); len(got) != row.want {
			t.Errorf("%s: %+v run", row.reason, got)
		}
		if got := images(t, known, inventory.ImageQuery{}); len(got) != 2 {
			t.Errorf("%s: %+v", row.reason, got)
		}
	}
}

// TestDecisionOpens: a decision has its object, cause and evidence; one that is unknown does not open.
func TestDecisionOpens(t *testing.T) {
	known, _ := newInventory(t)
	mail := unsigned("r.example/mail:1")
	mail.Container = "mail"
	mail.Mirror = &report.Mirror{Name: "m", PullSecrets: []string{"the-secret"}}
	known.Add(refused(begin), record(gate.Deny, proved("r.example/web:1", keyA), mail), podOf("shop", "mail", 1))
	known.Add(admitted(begin), record(gate.Allow, proved("r.example/web:1", keyA)), podOf("shop", "web", 1))
	page, err := known.Decisions(inventory.DecisionQuery{})
	if err != nil || len(page.Items) != 2 || page.Items[0].ID == page.Items[1].ID {
		t.Fatalf("%+v, %v", page, err)
	}
	got, ok := known.Decision(page.Items[1].ID)
	if !ok || got.Resource.Name != "mail-1" || got.Container != "mail" || got.Policy != "ClusterPolicy/signed" || got.Message == "" || got.Images[1].Container != "mail" {
		t.Errorf("%+v", got)
	}
	if text := string(got.Record); !strings.Contains(text, keyA) || !strings.Contains(text, "r.example/mail:1") || strings.Contains(text, "the-secret") {
		t.Errorf("the evidence is %s", got.Record)
	}
	if _, ok := known.Decision("0000"); ok {
		t.Error("an unknown decision opens")
	}
	undecided := refused(begin)
	undecided.Undecided, undecided.UID = "queue-full", "u"
	known.Add(undecided, report.Record{}, podOf("shop", "late", 1))
	page, err = known.Decisions(inventory.DecisionQuery{Text: "late"})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	if got, ok := known.Decision(page.Items[0].ID); !ok || got.Record != nil || got.Undecided != "queue-full" {
		t.Errorf("an undecided request: %+v", got)
	}
}

// TestDecisionEvidenceIsBounded: the latest decisions keep their evidence, and the oldest lose it first.
func TestDecisionEvidenceIsBounded(t *testing.T) {
	known, _ := newInventory(t)
	for n := range inventory.MaxDecisions + 1 {
		large := proved("r.example/web:1", keyA)
		for k := range 60 { // texts that do not compress to nothing
			d := large.Decisions[0]
			d.Rule = digest(fmt.Sprint(n, k)).Hex() + digest(fmt.Sprint(k, n)).Hex() + digest(fmt.Sprint("x", n, k)).Hex() + digest(fmt.Sprint("y", n, k)).Hex()
			large.Decisions = append(large.Decisions, d)
		}
		o := admitted(begin.Add(time.Duration(n) * time.Millisecond))
		known.Add(o, record(gate.Allow, large), podOf("shop", "web", n))
	}
	first, err := known.Decisions(inventory.DecisionQuery{Page: inventory.Page{Limit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := known.Decision(first.Items[0].ID); !ok || len(got.Record) == 0 {
		t.Error("the latest decision has no evidence")
	}
	kept := 0
	for offset := 0; offset < inventory.MaxDecisions; offset += inventory.MaxPage {
		page, err := known.Decisions(inventory.DecisionQuery{Page: inventory.Page{Offset: offset, Limit: inventory.MaxPage}})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Items {
			if got, ok := known.Decision(d.ID); ok && len(got.Record) > 0 {
				kept++
			}
		}
	}
	if kept == 0 || kept >= inventory.MaxDecisions {
		t.Errorf("%d of %d have evidence: the bound was not reached, or keeps none", kept, inventory.MaxDecisions)
	}
}
