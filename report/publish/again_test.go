package publish_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
	"github.com/quaymaster/quaymaster/report/result"
)

// TestTheScan: a scan's results for an object replace all others.
func TestTheScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := run(t, s)
		defer p.stop()
		p.Take(decided("lone", "", true))
		wait(time.Minute)
		another := func(d *report.Decided, _ *policy.Subject) {
			d.Occasion.Process = report.ProcessScan
			d.Outcome.Rules[0].Policy = &policy.Policy{Kind: "ClusterPolicy", Name: "other", Hash: "h2"}
		}
		if err := p.Put(t.Context(), decided("lone", "", true, another)); err != nil {
			t.Fatal(err)
		}
		wait(time.Minute)
		if got := s.results("shop/quaymaster-uid-lone"); !slices.Equal(got, []string{"other pass"}) {
			t.Errorf("the report has %v, want the scan's results", got)
		}
		p.Take(decided("lone", "", false))
		wait(time.Minute)
		if got := s.results("shop/quaymaster-uid-lone"); !slices.Equal(got, []string{"labels fail", "other pass"}) {
			t.Errorf("the report has %v, want admission's results, too", got)
		}
	})
}

// TestTheScanAndOtherObjects: a scan leaves the results of rules about other objects, which it does not
// evaluate, until such a rule does not match the object any more.
func TestTheScanAndOtherObjects(t *testing.T) {
	for _, passes := range []bool{true, false} { // a pass is stored without its process
		for _, counted := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				matches := true
				p := run(t, s, func(o *publish.Options) {
					o.Selection.CountPasses = counted
					o.Others = func(*policy.Subject) []result.Rule {
						if !matches {
							return nil
						}
						return []result.Rule{{Policy: result.Policy{Kind: "ClusterPolicy", Name: "labels"}, Rule: "make"}}
					}
				})
				defer p.stop()
				made := func(d *report.Decided, s *policy.Subject) {
					d.Occasion.Process, s.Operation, d.Outcome.Rules[0].Kind, d.Outcome.Rules[0].Rule = report.ProcessBackground, "", policy.GenerateRule, "make"
				}
				if err := p.Put(t.Context(), decided("lone", "", passes, made)); err != nil {
					t.Fatal(err)
				}
				scan := func(want string) {
					t.Helper()
					if err := p.Put(t.Context(), decided("lone", "", false, func(d *report.Decided, _ *policy.Subject) { d.Occasion.Process = report.ProcessScan })); err != nil {
						t.Fatal(err)
					}
					wait(time.Minute)
					if got := s.summary("shop/quaymaster-uid-lone"); got != want {
						t.Errorf("passes %t, counted %t, matches %t: %s, want %s", passes, counted, matches, got, want)
					}
				}
				wait(time.Minute)
				scan(map[bool]string{true: "fail:1 pass:1", false: "fail:2"}[passes])
				matches = false
				scan("fail:1")
			})
		}
	}
}

// TestTheScanOfAWorkload: the most frequent result of the pods is the shared one, whichever
// pod was scanned first.
func TestTheScanOfAWorkload(t *testing.T) {
	scanned := func(d *report.Decided, _ *policy.Subject) { d.Occasion.Process = report.ProcessScan }
	for _, row := range []struct {
		reason string
		passes []bool
		want   []string
	}{
		{"the first differs", []bool{false, true, true}, []string{"labels fail pod-0", "labels pass"}},
		{"the last differs", []bool{true, true, false}, []string{"labels fail pod-2", "labels pass"}},
		{"most fail", []bool{true, false, false}, []string{"labels fail", "labels pass pod-0"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			p := run(t, s)
			defer p.stop()
			for i, passes := range row.passes {
				if err := p.Put(t.Context(), decided(fmt.Sprint("pod-", i), "web", passes, scanned)); err != nil {
					t.Fatal(err)
				}
				wait(time.Second)
			}
			wait(time.Minute)
			if got := s.results("shop/quaymaster-uid-web"); !slices.Equal(got, row.want) {
				t.Errorf("%s: the report has %v, want %v", row.reason, got, row.want)
			}
			if s.writes["shop/quaymaster-uid-web"] != 1 {
				t.Errorf("%s: %d writes", row.reason, s.writes["shop/quaymaster-uid-web"])
			}
		})
	}
}

// TestBesideOthers: another writer's report for the same object under its UID stays as it
// is, and causes no conflict. A foreign report with our own name is left alone.
func TestBesideOthers(t *testing.T) {
	for _, row := range []struct {
		reason, name string
		want         []string
	}{
		{"by the bare UID", "uid-lone", []string{"shop/quaymaster-uid-lone", "shop/uid-lone"}},
		{"by our name", "quaymaster-uid-lone", []string{"shop/quaymaster-uid-lone"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			theirs := map[string]any{
				"apiVersion": string(policyreport.PolicyReports), "kind": "PolicyReport",
				"metadata": map[string]any{"namespace": "shop", "name": row.name, "labels": map[string]any{"app.kubernetes.io/managed-by": "kyverno"}},
			}
			s.keep(theirs)
			before := versionOf(theirs)
			p := run(t, s)
			defer p.stop()
			p.Take(decided("lone", "", true))
			wait(time.Hour)
			if got := s.names(); !slices.Equal(got, row.want) {
				t.Errorf("%s: the reports are %v, want %v", row.reason, got, row.want)
			}
			if now := versionOf(s.objects["shop/"+row.name]); now != before {
				t.Errorf("%s: it was written over", row.reason)
			}
			if dropped := p.told.drops[publish.Rejected] > 0; dropped != (len(row.want) == 1) || p.Pending() != 0 {
				t.Errorf("%s: drops %v", row.reason, p.told.drops)
			}
		})
	}
}

// TestTheSameAgain: an equal result is not written again, from any source
// and of any size.
func TestTheSameAgain(t *testing.T) {
	rich := func(d *report.Decided, _ *policy.Subject) {
		d.Outcome.Rules[0].Policy = &policy.Policy{
			Kind: "ClusterPolicy", Name: "labels", Metadata: policy.Metadata{Title: "Labels", Category: "Best practices", Severity: "medium"}, Hash: strings.Repeat("ab", 32),
		}
		d.Outcome.Rules[0].Properties = map[string]string{"team": "blue"}
	}
	scanned := func(d *report.Decided, _ *policy.Subject) { d.Occasion.Process = report.ProcessScan }
	updated := func(d *report.Decided, s *policy.Subject) { d.Occasion.Operation, s.Operation = "UPDATE", "UPDATE" }
	for _, of := range []string{"", "web"} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			p := run(t, s)
			defer p.stop()
			p.Take(decided("pod-1", of, false, rich))
			wait(time.Minute)
			for _, again := range []func(*report.Decided, *policy.Subject){updated, scanned, updated} {
				p.Take(decided("pod-1", of, false, rich, again))
				wait(time.Minute)
			}
			if s.counts["put"] != 1 || p.told.wrote[publish.Unchanged] != 3 {
				t.Errorf("of %q: %d writes, %v", of, s.counts["put"], p.told.wrote)
			}
		})
	}
}

// TestAnUpdateHidesNoFailure: a rule that lets an update through, because it makes
// nothing worse, keeps its failure for the object.
func TestAnUpdateHidesNoFailure(t *testing.T) {
	for _, row := range []struct {
		operation string
		kind      policy.RuleKind
		want      string
	}{{"UPDATE", policy.ValidateRule, "labels fail"}, {"CREATE", policy.ValidateRule, "labels skip"}, {"UPDATE", policy.MutateRule, "labels skip"}} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			p := run(t, s)
			defer p.stop()
			p.Take(decided("lone", "", false))
			wait(time.Minute)
			p.Take(decided("lone", "", true, func(d *report.Decided, s *policy.Subject) {
				s.Operation, d.Outcome.Rules[0].Kind, d.Outcome.Rules[0].Skip = row.operation, row.kind, "it violated the rule before"
			}))
			wait(time.Minute)
			if got := s.results("shop/quaymaster-uid-lone"); !slices.Equal(got, []string{row.want}) {
				t.Errorf("%s: the report has %v, want %s", row.operation, got, row.want)
			}
		})
	}
}

// TestPoliciesThatAreGone: their results are removed, and with the last of them the report.
func TestPoliciesThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := run(t, s)
		defer p.stop()
		p.Take(decided("lone", "", false))
		wait(time.Minute)
		scope := report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "lone", UID: "uid-lone"}
		at := policyreport.Place{Namespace: "shop", Name: "quaymaster-uid-lone", Scope: scope}
		for _, row := range []struct {
			reason string
			there  []result.Policy
			want   int
		}{
			{"it is there", []result.Policy{{Kind: "ClusterPolicy", Name: "labels"}}, 1},
			{"another has its name", []result.Policy{{Kind: "ValidatingPolicy", Name: "labels"}}, 0},
		} {
			if err := p.Keep(t.Context(), at, row.there); err != nil {
				t.Fatal(err)
			}
			wait(time.Minute)
			if got := s.names(); len(got) != row.want {
				t.Errorf("%s: the reports are %v, want %d", row.reason, got, row.want)
			}
		}
	})
}

// TestWorkloadsThatCannotBeLookedUp: the owner reference of the pod is used.
func TestWorkloadsThatCannotBeLookedUp(t *testing.T) {
	for _, row := range []struct {
		reason string
		fails  int
		want   string
	}{{"it works", 0, "shop/quaymaster-uid-web"}, {"it fails twice", 2, "shop/quaymaster-uid-web"}, {"it fails", 100, "shop/quaymaster-uid-1-web"}} {
		synctest.Test(t, func(t *testing.T) {
			s, tries := newStore(), 0
			p := run(t, s, func(o *publish.Options) {
				o.Workloads = workloads{fail: func() error {
					tries++
					if tries <= row.fails {
						return errDown
					}
					return nil
				}}
			})
			defer p.stop()
			p.Take(decided("pod-1", "web", true))
			wait(time.Minute)
			if got := s.names(); !slices.Equal(got, []string{row.want}) {
				t.Errorf("%s: the report is %v, want %s", row.reason, got, row.want)
			}
		})
	}
}

// TestNew refuses what means nothing.
func TestNew(t *testing.T) {
	whole := func() publish.Options {
		return publish.Options{
			Stores: map[policyreport.API]publish.Store{policyreport.OpenReports: newStore()}, Workloads: workloads{}, Observer: newObserver(),
		}
	}
	for _, row := range []struct {
		reason string
		change func(*publish.Options)
		bad    bool
	}{
		{"all that is required", func(*publish.Options) {}, false},
		{"no store", func(o *publish.Options) { o.Stores = nil }, true},
		{"no observer", func(o *publish.Options) { o.Observer = nil }, true},
		{"by workload, without a lookup", func(o *publish.Options) { o.Workloads = nil }, true},
		{"by namespace, which needs none", func(o *publish.Options) { o.Workloads, o.Grouping = nil, policyreport.ByNamespace }, false},
	} {
		o := whole()
		row.change(&o)
		if _, err := publish.New(o); (err != nil) != row.bad {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

// TestBackfill: decisions from before the start are merged into existing
// reports, without a conflict, and replace no newer result.
func TestBackfill(t *testing.T) {
	created := func(passes bool, ago time.Duration) report.Decided {
		d := decided("lone", "", passes)
		d.Outcome.Subject.Operation, d.Occasion.Process = "CREATE", report.ProcessAdmission
		d.Occasion.Time = time.Now().Add(-ago)
		return d
	}
	for _, row := range []struct {
		reason string
		there  bool // a result of a minute ago is in a report already
		passes bool
		ago    time.Duration
		want   string
		writes int
	}{
		{"it was not written", false, true, time.Minute, "labels pass", 1},
		{"it was written", true, true, time.Minute, "labels pass", 0},
		{"something newer was", true, false, time.Hour, "labels pass", 0},
		{"something older was", true, false, time.Second, "labels fail", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			if row.there {
				before := run(t, s)
				before.Take(created(true, time.Minute))
				wait(time.Minute)
				before.stop()
			}
			writes := s.writes["shop/quaymaster-uid-lone"]
			p := run(t, s)
			defer p.stop()
			recalled := created(row.passes, row.ago+time.Minute) // a minute has gone by
			if row.there {
				recalled.Occasion.Time = recalled.Occasion.Time.Truncate(time.Microsecond)
			}
			if err := p.Put(t.Context(), recalled); err != nil {
				t.Fatal(err)
			}
			wait(time.Minute)
			if got := s.results("shop/quaymaster-uid-lone"); len(got) != 1 || got[0] != row.want {
				t.Errorf("%s: the report has %v, want %s", row.reason, got, row.want)
			}
			if got := s.writes["shop/quaymaster-uid-lone"] - writes; got != row.writes || p.told.wrote[publish.Conflicted] > 0 {
				t.Errorf("%s: %d writes, want %d; %v", row.reason, got, row.writes, p.told.wrote)
			}
		})
	}
}
