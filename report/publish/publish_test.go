package publish_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
)

// TestABurstIsOneWrite: pods that come together are one write for each report, and what
// changes nothing is none.
func TestABurstIsOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := run(t, s)
		defer p.stop()
		burst := func() {
			for i := range 100 {
				p.Take(decided(fmt.Sprint("pod-", i), fmt.Sprint("web", i%10), i != 7))
				wait(100 * time.Millisecond)
			}
		}
		burst()
		wait(30 * time.Second)
		if got := len(s.names()); got != 10 || p.Pending() != 0 {
			t.Fatalf("%d reports, %d results wait, want one for each workload and nothing that waits", got, p.Pending())
		}
		if got := s.results("shop/quaymaster-uid-web7"); !slices.Equal(got, []string{"labels fail pod-7", "labels pass"}) {
			t.Errorf("the report with a failing pod has %v", got)
		}
		if s.counts["put"] > 12 {
			t.Errorf("%d writes for 10 reports, want at most 1.2 each", s.counts["put"])
		}
		before := s.counts["put"]
		burst()
		wait(30 * time.Second)
		if s.counts["put"] != before {
			t.Errorf("%d writes of equal results", s.counts["put"]-before)
		}
	})
}

// TestDecisionsWithoutReport: an object that does not exist gets no report.
func TestDecisionsWithoutReport(t *testing.T) {
	type change = func(*report.Decided, *policy.Subject)
	for _, row := range []struct {
		reason string
		change change
		want   int
	}{
		{"it was admitted", func(*report.Decided, *policy.Subject) {}, 1},
		{"it was denied", func(d *report.Decided, _ *policy.Subject) { d.Occasion.Allowed = false }, 0},
		{"it was only tried", func(d *report.Decided, _ *policy.Subject) { d.Occasion.DryRun = true }, 0},
		{"a query at another endpoint, with an object that may not exist", func(d *report.Decided, _ *policy.Subject) {
			d.Occasion.Endpoint, d.Occasion.Operation = "api", ""
		}, 0},
		{"a scan found it", func(d *report.Decided, _ *policy.Subject) {
			d.Occasion.Process, d.Occasion.Operation = report.ProcessScan, ""
		}, 1},
		{"a rule about other objects", func(d *report.Decided, _ *policy.Subject) {
			d.Occasion.Process, d.Occasion.Operation, d.Outcome.Rules[0].Kind = report.ProcessBackground, "", policy.GenerateRule
		}, 1},
		{"a rule about other objects, and its policy's author disabled them", func(d *report.Decided, _ *policy.Subject) {
			d.Occasion.Process, d.Occasion.Operation, d.Outcome.Rules[0].Kind = report.ProcessBackground, "", policy.GenerateRule
			d.Outcome.Rules[0].Policy.Unreported = true
		}, 0},
		{"undecided", func(d *report.Decided, _ *policy.Subject) { d.Occasion.Undecided = "timed-out" }, 0},
		{"a client connects to it", func(_ *report.Decided, s *policy.Subject) { s.Operation = "CONNECT" }, 0},
		{"a part of it that is another object", func(_ *report.Decided, s *policy.Subject) { s.Subresource = "eviction" }, 0},
		{"a part of it that changes it", func(_ *report.Decided, s *policy.Subject) { s.Subresource = "ephemeralcontainers" }, 1},
		{"a report itself", func(_ *report.Decided, s *policy.Subject) { s.Group, s.Kind = "wgpolicyk8s.io", "PolicyReport" }, 0},
		{"an event", func(_ *report.Decided, s *policy.Subject) { s.Kind = "Event" }, 0},
		{"the policy's author disabled them", func(d *report.Decided, _ *policy.Subject) { d.Outcome.Rules[0].Policy.Unreported = true }, 0},
		{"it has no UID, by which its report would go with it", func(_ *report.Decided, s *policy.Subject) {
			s.Object = policy.ContentOf(map[string]any{"metadata": map[string]any{"name": "pod-1", "namespace": "shop"}})
		}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			p := run(t, s)
			defer p.stop()
			p.Take(decided("pod-1", "", false, row.change))
			wait(time.Minute)
			if got := len(s.names()); got != row.want {
				t.Errorf("%s: %d reports, want %d", row.reason, got, row.want)
			}
		})
	}
}

// TestNamespaces: a request for a namespace names that namespace, and the object is in
// none.
func TestNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := run(t, s)
		defer p.stop()
		p.Take(decided("shop", "", true, func(_ *report.Decided, s *policy.Subject) {
			s.Kind = "Namespace"
			s.Object = policy.ContentOf(map[string]any{"metadata": map[string]any{"name": "shop", "uid": "uid-shop"}})
		}))
		wait(time.Minute)
		if got := s.names(); !slices.Equal(got, []string{"/quaymaster-uid-shop"}) {
			t.Errorf("the reports are %v, want one of the cluster", got)
		}
	})
}

// TestReplicasShareAReport: two writers, of which each knows half, and conflicts at
// each write.
func TestReplicasShareAReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.before = func(string, string) error { <-time.After(10 * time.Millisecond); return nil }
		a, b := run(t, s), run(t, s)
		defer a.stop()
		defer b.stop()
		for i := range 20 {
			p := a
			if i%2 == 1 {
				p = b
			}
			p.Take(decided(fmt.Sprint("pod-", i), "web", i > 3))
		}
		wait(time.Minute)
		want := []string{"labels fail pod-0", "labels fail pod-1", "labels fail pod-2", "labels fail pod-3", "labels pass"}
		if got := s.results("shop/quaymaster-uid-web"); !slices.Equal(got, want) {
			t.Errorf("the report has %v, want %v", got, want)
		}
		if a.told.wrote[publish.Conflicted]+b.told.wrote[publish.Conflicted] == 0 {
			t.Error("no conflict occurred: the test shows nothing")
		}
		if s.writes["shop/quaymaster-uid-web"] > 4 {
			t.Errorf("%d writes", s.writes["shop/quaymaster-uid-web"])
		}
	})
}

// TestNewObjects: the writer of the first result for an object need not read the report
// before, and does so where another writer was faster after all.
func TestNewObjects(t *testing.T) {
	updated := func(d *report.Decided, s *policy.Subject) { d.Occasion.Operation, s.Operation = "UPDATE", "UPDATE" }
	for _, row := range []struct {
		reason   string
		of       string
		change   []func(*report.Decided, *policy.Subject)
		isFaster bool
		gets     int
	}{
		{"it was created", "", nil, false, 0},
		{"it was updated", "", []func(*report.Decided, *policy.Subject){updated}, false, 1},
		{"it is one of a workload's", "web", nil, false, 1},
		{"another writer was faster", "", nil, true, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			if row.isFaster {
				other := run(t, s)
				other.Take(decided("pod-1", "", true))
				wait(time.Minute)
				other.stop()
			}
			p := run(t, s)
			defer p.stop()
			p.Take(decided("pod-1", row.of, false, row.change...))
			wait(time.Minute)
			if s.counts["get"] < row.gets || row.gets == 0 && s.counts["get"] > 0 {
				t.Errorf("%s: %d reads, want %d", row.reason, s.counts["get"], row.gets)
			}
			if got := s.results(s.names()[0]); !slices.Equal(got, []string{"labels fail"}) {
				t.Errorf("%s: the report has %v", row.reason, got)
			}
		})
	}
}

// TestForeignEdits: additions of other writers stay, and damaged results are repaired.
func TestForeignEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := run(t, s)
		defer p.stop()
		p.Take(decided("pod-1", "web", true))
		wait(time.Minute)
		edits := 0
		s.before = func(verb, name string) error {
			if verb == "put" && edits < 2 {
				edits++
				s.touch(name, func(object map[string]any) {
					object["metadata"].(map[string]any)["labels"].(map[string]any)["team"] = fmt.Sprint("blue", edits)
					delete(object, "results")
				})
			}
			return nil
		}
		p.Take(decided("pod-2", "web", false))
		wait(time.Minute)
		if got := s.results("shop/quaymaster-uid-web"); !slices.Contains(got, "labels fail pod-2") && !slices.Equal(got, []string{"labels fail"}) {
			t.Errorf("the report has %v", got)
		}
		labels := s.objects["shop/quaymaster-uid-web"]["metadata"].(map[string]any)["labels"].(map[string]any)
		if labels["team"] != "blue2" || edits != 2 {
			t.Errorf("after %d edits the labels are %v", edits, labels)
		}
	})
}

// TestAStoreThatFails: what could not be written is tried again, until it is.
func TestAStoreThatFails(t *testing.T) {
	for _, row := range []struct {
		reason string
		fail   func(verb string, since time.Duration) error
		want   int
	}{
		{"it answers", func(string, time.Duration) error { return nil }, 1},
		{"it is down for a minute", func(_ string, since time.Duration) error {
			if since < time.Minute {
				return errDown
			}
			return nil
		}, 1},
		{"it refuses writes for a minute", func(verb string, since time.Duration) error {
			if since < time.Minute && verb == "put" {
				return errDown
			}
			return nil
		}, 1},
		{"another writer is faster all the time, for a minute", func(verb string, since time.Duration) error {
			if since < time.Minute && verb == "put" {
				return publish.ErrConflict
			}
			return nil
		}, 1},
		{"it will not have it", func(verb string, _ time.Duration) error {
			if verb == "put" {
				return publish.ErrRejected
			}
			return nil
		}, 0},
		{"the namespace is gone", func(string, time.Duration) error { return publish.ErrNotFound }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			began := time.Now()
			s.before = func(verb, _ string) error { return row.fail(verb, time.Since(began)) }
			p := run(t, s)
			defer p.stop()
			p.Take(decided("pod-1", "web", false))
			wait(10 * time.Minute)
			if got := len(s.names()); got != row.want || p.Pending() != 0 {
				t.Errorf("%s: %d reports and %d that wait, want %d and none", row.reason, got, p.Pending(), row.want)
			}
		})
	}
}

// TestDefect: a result that cannot be encoded because of a defect is reported, and later ones
// are written.
func TestDefect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := run(t, s)
		defer p.stop()
		p.Take(decided("pod-1", "web", true, func(d *report.Decided, _ *policy.Subject) {
			d.Outcome.Verdicts = []gate.Verdict{{Decisions: []policy.Decision{{Result: policy.Pass}}}} // of no check
		}))
		p.Take(decided("pod-2", "db", true))
		wait(time.Minute)
		if got := s.names(); len(got) != 1 || p.Pending() != 0 {
			t.Errorf("reports %v and %d that wait, want one and none", got, p.Pending())
		}
	})
}

// TestAnAPIThatIsNotServed: it is reported once, and reports are written when it is served.
func TestAnAPIThatIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		served := false
		s.before = func(string, string) error {
			if !served {
				return publish.ErrNotServed
			}
			return nil
		}
		p := run(t, s)
		defer p.stop()
		for i := range 100 {
			p.Take(decided(fmt.Sprint("pod-", i), "", false))
			wait(time.Second)
		}
		if !slices.Equal(p.told.served, []bool{false}) || p.told.drops[publish.NotServed] == 0 || len(p.told.failed) > 0 {
			t.Errorf("served %v, dropped %v, failed %v", p.told.served, p.told.drops, p.told.failed)
		}
		served = true
		wait(time.Minute)
		p.Take(decided("late", "", false))
		wait(time.Minute)
		if !slices.Equal(p.told.served, []bool{false, true}) || !slices.Equal(s.names(), []string{"shop/quaymaster-uid-late"}) {
			t.Errorf("served %v, reports %v", p.told.served, s.names())
		}
	})
}

// TestDeleted: the listed results of a pod are removed with it.
func TestDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := run(t, s)
		defer p.stop()
		for i := range 5 {
			p.Take(decided(fmt.Sprint("pod-", i), "web", i > 0))
		}
		p.Take(decided("lone", "", true))
		wait(time.Minute)
		goes := func(d *report.Decided, s *policy.Subject) {
			d.Occasion.Operation, s.Operation = "DELETE", "DELETE"
			s.Object, s.OldObject = policy.Content{}, s.Object
		}
		writes := s.writes["shop/quaymaster-uid-lone"]
		p.Take(decided("pod-0", "web", true, goes))
		p.Take(decided("lone", "", true, goes))
		wait(time.Minute)
		if got := s.results("shop/quaymaster-uid-web"); !slices.Equal(got, []string{"labels pass"}) {
			t.Errorf("the report has %v of a pod that is gone", got)
		}
		if s.writes["shop/quaymaster-uid-lone"] != writes {
			t.Error("a report that goes with its pod was written")
		}
	})
}

// TestTheEnd: what waits is written when the program ends, and what cannot be is left.
func TestTheEnd(t *testing.T) {
	for _, row := range []struct {
		reason string
		err    error
		want   int
	}{{"the API server answers", nil, 50}, {"it does not", errDown, 0}} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			s.before = func(string, string) error { return row.err }
			p := run(t, s)
			for i := range 50 {
				p.Take(decided(fmt.Sprint("pod-", i), "", true))
			}
			began := time.Now()
			p.stop()
			if took := time.Since(began); len(s.names()) != row.want || took > 11*time.Second {
				t.Errorf("%s: %d reports after %s, want %d", row.reason, len(s.names()), took, row.want)
			}
		})
	}
}

// TestParts: a report that has grown has more parts, and one that has shrunk fewer.
func TestParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := run(t, s, func(o *publish.Options) {
			o.Grouping, o.Limits = policyreport.ByNamespace, policyreport.Limits{Results: 10}
		})
		defer p.stop()
		for i := range 35 {
			p.Take(decided(fmt.Sprintf("pod-%02d", i), "", true))
		}
		wait(time.Minute)
		if got := s.names(); len(got) != 4 {
			t.Fatalf("35 results in parts of 10 are %v", got)
		}
		before := s.counts["put"]
		p.Take(decided("pod-34", "", false))
		wait(time.Minute)
		if s.counts["put"] != before+1 {
			t.Errorf("%d writes for a change in one part", s.counts["put"]-before)
		}
		for i := range 30 {
			at := report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: fmt.Sprintf("pod-%02d", i), UID: fmt.Sprintf("uid-pod-%02d", i)}
			if err := p.Remove(t.Context(), at, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		wait(time.Minute)
		if got := s.names(); len(got) != 1 || len(s.results(got[0])) != 5 {
			t.Errorf("after 30 are gone there are %v", got)
		}
	})
}
