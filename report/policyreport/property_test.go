package policyreport_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// dice makes up results about few objects and rules, so that many are about the same.
type dice struct {
	*rand.Rand
	at time.Time
	// hashes is the number of versions of a policy, and owners adds results of other objects than pods.
	hashes int
	owners bool
}

func (d *dice) of(list ...string) string { return list[d.IntN(len(list))] }

func (d *dice) result() result.Result {
	d.at = d.at.Add(time.Duration(1+d.IntN(5000)) * time.Millisecond)
	r := result.Result{
		Policy: result.Policy{
			Kind: "ClusterPolicy", Name: d.of("alpha", "beta"), Category: "Best Practices", Severity: d.of("", "high"), Hash: strings.Repeat("abc", d.IntN(d.hashes)+1),
		},
		Rule: d.of("one", "two"), Status: result.Statuses()[d.IntN(5)], Time: d.at, Process: report.ProcessAdmission,
	}
	r.Policy.Severity = map[string]string{"alpha": "high"}[r.Policy.Name]
	switch kind := d.IntN(6); {
	case !d.owners || kind > 1:
		r.Resource = pod("shop", fmt.Sprintf("web-%d", d.IntN(4)), nil).resource()
	case kind == 0:
		r.Resource, r.Rule = named("apps/v1", "Deployment", "shop", "web").resource(), "autogen-"+r.Rule
	default:
		r.Resource, r.Rule = named("apps/v1", "ReplicaSet", "shop", "web-1").resource(), "autogen-"+r.Rule
	}
	if d.IntN(2) == 0 {
		r.Image = &result.Image{Container: d.of("web", "sidecar"), Written: "nginx:1", Digest: d.of("", "sha256:1", "sha256:2"), Signer: d.of("", "key ours")}
	}
	if r.Status == result.Fail {
		r.Code, r.Message = policy.Violated, d.of("no", "never", "not <&> \u2028 é \"like\" this")
	}
	if d.IntN(8) == 0 {
		r.Properties = map[string]string{"team": d.of("a", "b")}
	}
	return r
}

func (d *dice) results(n int) []result.Result {
	var all []result.Result
	for range n {
		all = append(all, d.result())
	}
	return all
}

func (d *dice) shuffled(results []result.Result) []result.Result {
	results = slices.Clone(results)
	d.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
	return results
}

// places has one place for each layout of results.
func places(t *testing.T) map[string]policyreport.Place {
	t.Helper()
	web, lone := named("apps/v1", "Deployment", "shop", "web").resource(), pod("shop", "web-0", nil).resource()
	rollout := named("argoproj.io/v1alpha1", "Rollout", "shop", "web").resource()
	one := result.Result{Resource: lone}
	return map[string]policyreport.Place{
		"workload":  place(t, policyreport.ByWorkload, one, web),
		"unknown":   place(t, policyreport.ByWorkload, one, rollout),
		"resource":  place(t, policyreport.ByResource, one, web),
		"namespace": place(t, policyreport.ByNamespace, one, web),
	}
}

func selections() []policyreport.Selection {
	return []policyreport.Selection{
		{},
		{CountPasses: true},
		{Statuses: []result.Status{result.Fail, result.Warn, result.Error}},
		{Statuses: []result.Status{result.Pass, result.Fail}},
		{Statuses: []result.Status{result.Fail}, CountPasses: true},
	}
}

// each runs a property for all places, selections and some seeds.
func each(t *testing.T, property func(t *testing.T, d *dice, at policyreport.Place, show policyreport.Selection)) {
	t.Helper()
	for name, at := range places(t) {
		for i, show := range selections() {
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				for seed := range uint64(8) {
					d := &dice{Rand: rand.New(rand.NewPCG(seed, 7)), at: morning, hashes: 1 + int(seed%2), owners: seed%3 != 0}
					property(t, d, at, show)
					if t.Failed() {
						t.Fatalf("seed %d", seed)
					}
				}
			})
		}
	}
}

func texts(parts []policyreport.Part) string {
	var all strings.Builder
	for _, part := range parts {
		if part.Action == policyreport.Delete {
			continue
		}
		fmt.Fprintf(&all, "%s/%s %s\n", part.Namespace, part.Name, part.JSON)
	}
	return all.String()
}

func contents(parts []policyreport.Part) [][]byte {
	var all [][]byte
	for _, part := range parts {
		if part.Action != policyreport.Delete {
			all = append(all, part.JSON)
		}
	}
	return all
}

func decode(t *testing.T, at policyreport.Place, show policyreport.Selection, texts [][]byte) *policyreport.Report {
	t.Helper()
	r, err := policyreport.Decode(at, show, texts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOrder: results that are given together may be in any order, and twice.
func TestOrder(t *testing.T) {
	each(t, func(t *testing.T, d *dice, at policyreport.Place, show policyreport.Selection) {
		results := d.results(40)
		a, b := policyreport.New(at, show), policyreport.New(at, show)
		a.Merge(results)
		b.Merge(d.shuffled(results))
		if one, other := texts(encode(t, a, policyreport.PolicyReports)), texts(encode(t, b, policyreport.PolicyReports)); one != other {
			t.Errorf("the order counts:\n%s\n%s", one, other)
		}
	})
}

// TestAnyOrder: where each object has its own results, these may come one by one and in
// any order, if everything is kept: hidden results leave no time.
func TestAnyOrder(t *testing.T) {
	each(t, func(t *testing.T, d *dice, at policyreport.Place, show policyreport.Selection) {
		if at.Scope.Kind == "Deployment" || at.Scope.Kind == "Rollout" || len(show.Statuses) > 0 || show.CountPasses {
			return
		}
		results := d.results(40)
		a, b := policyreport.New(at, show), policyreport.New(at, show)
		a.Merge(results)
		for _, one := range d.shuffled(results) {
			b.Merge([]result.Result{one})
		}
		if one, other := texts(encode(t, a, policyreport.PolicyReports)), texts(encode(t, b, policyreport.PolicyReports)); one != other {
			t.Errorf("the order counts:\n%s\n%s", one, other)
		}
	})
}

// TestAgain: a merged result changes nothing when it is merged again, nor does the
// same result at a later time.
func TestAgain(t *testing.T) {
	each(t, func(t *testing.T, d *dice, at policyreport.Place, show policyreport.Selection) {
		newest := map[result.Key]result.Result{}
		for _, r := range d.results(40) {
			r.Policy.Hash = "abc"
			newest[r.Key()] = r
		}
		var results []result.Result
		for _, r := range newest {
			results = append(results, r)
		}
		r := policyreport.New(at, show)
		r.Merge(results)
		before := texts(encode(t, r, policyreport.PolicyReports))
		if r.Merge(results) || texts(encode(t, r, policyreport.PolicyReports)) != before {
			t.Error("the same again is a change")
		}
		for i := range results {
			results[i].Time, results[i].Process = results[i].Time.Add(time.Hour), report.ProcessScan
		}
		if r.Merge(results) {
			t.Errorf("a newer time is a change:\n%s\n%s", before, texts(encode(t, r, policyreport.PolicyReports)))
		}
	})
}

// TestRoundTrip: a report that is written and read is the same, and goes on as if it
// had not been; in one part and in several.
func TestRoundTrip(t *testing.T) {
	each(t, func(t *testing.T, d *dice, at policyreport.Place, show policyreport.Selection) {
		for _, api := range policyreport.APIs() {
			limits := policyreport.Limits{Results: 1 + d.IntN(20)}
			r := policyreport.New(at, show)
			r.Merge(d.results(30))
			parts, err := r.Encode(api, limits)
			if err != nil {
				t.Fatal(err)
			}
			if len(parts) > 0 && policyreport.Parts(parts[0].JSON) != len(parts) {
				t.Errorf("the first of %d parts has the number %d", len(parts), policyreport.Parts(parts[0].JSON))
			}
			read := decode(t, at, show, contents(parts))
			again, err := read.Encode(api, limits)
			if err != nil {
				t.Fatal(err)
			}
			if texts(again) != texts(parts) {
				t.Errorf("read and written:\n%s\n%s", texts(parts), texts(again))
			}
			for _, part := range again {
				if part.Action != policyreport.Keep {
					t.Errorf("%s of what has not changed", part.Action)
				}
			}
			later := d.results(10)
			if one, other := r.Merge(later), read.Merge(later); one != other {
				t.Errorf("merging changes %t, and after a reading %t", one, other)
			}
			if one, other := texts(encode(t, r, api)), texts(encode(t, read, api)); one != other {
				t.Errorf("merged after a reading:\n%s\n%s", one, other)
			}
		}
	})
}

// TestTruth: no object gets a result that is not its own. Of pods under policies that do not
// change, each has its newest result in the report: listed, or as the shared one.
func TestTruth(t *testing.T) {
	each(t, func(t *testing.T, d *dice, at policyreport.Place, show policyreport.Selection) {
		d.hashes, d.owners = 1, false
		if len(show.Statuses) > 0 || show.CountPasses {
			return
		}
		r, newest := policyreport.New(at, show), map[result.Key]result.Result{}
		for range 12 {
			batch := d.results(1 + d.IntN(8))
			for _, one := range batch {
				newest[one.Key()] = one
			}
			r.Merge(d.shuffled(batch))
			parts := encode(t, r, policyreport.OpenReports)
			r = decode(t, at, show, contents(parts))
			entries := read(t, parts)
			for _, want := range newest {
				got, ok := entries.about(at.Scope, want)
				if !ok || got.Result != string(want.Status) || got.Message != want.Message && want.Status != result.Error {
					t.Errorf("%s of %s is %s %q, and in the report %+v", want.Rule, want.Resource.Name, want.Status, want.Message, got)
				}
			}
		}
	})
}
