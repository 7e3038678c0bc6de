package reporting

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/workload"
)

// TestMutationsArePassedOn: the results of mutation rules for an object that was there are passed on
// from the mutating endpoint, without those of other rules.
func TestMutationsArePassedOn(t *testing.T) {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "p"}
	mutation, other := policy.RuleResult{Policy: p, Rule: "m", Kind: policy.MutateRule, Changed: true}, policy.RuleResult{Policy: p, Rule: "v", Kind: policy.ValidateRule}
	for _, c := range []struct {
		reason    string
		endpoint  admission.Endpoint
		operation string
		rules     []policy.RuleResult
		want      int
	}{
		{"an update", admission.Mutate, "UPDATE", []policy.RuleResult{mutation, other}, 1},
		{"no mutation rule", admission.Mutate, "UPDATE", []policy.RuleResult{other}, 0},
		{"a creation: there is no UID yet", admission.Mutate, "CREATE", []policy.RuleResult{mutation}, 0},
		{"the validating endpoint has none", admission.Validate, "UPDATE", []policy.RuleResult{other}, 0},
	} {
		kept := &shelf{}
		Recorder{Log: slog.New(slog.DiscardHandler), Metrics: &counts{}, Sinks: Sinks{Mutated: []report.Sink{kept}}}.Record(t.Context(), admission.Review{
			Endpoint: c.endpoint, Operation: c.operation, Version: "v1", Kind: "Pod", Namespace: "shop", Name: "app", Cause: admission.Decided, Allowed: true,
			Outcome: gate.Outcome{Result: gate.Allow, Rules: c.rules},
		})
		if len(kept.all) != c.want || c.want == 1 && (len(kept.all[0].Outcome.Rules) != 1 || kept.all[0].Outcome.Rules[0].Rule != "m") {
			t.Errorf("%s: %+v", c.reason, kept.all)
		}
	}
}

// newPod is a pod on its way in, as an API server sends it.
func newPod(t *testing.T, metadata, spec string) workload.Object {
	t.Helper()
	object, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{` + metadata + `},"spec":{` + spec + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// TestMutationsOfNewObjects: the results of mutation rules for a new object are passed on when the
// validating endpoint receives the same object with its UID, and never for another object.
func TestMutationsOfNewObjects(t *testing.T) {
	const named, generated = `"name":"app","namespace":"shop"`, `"generateName":"app-","namespace":"shop"`
	const image, pinned = `"containers":[{"name":"a","image":"nginx"}]`, `"containers":[{"name":"a","image":"nginx@sha256:1"}]`
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "p"}
	applied := policy.RuleResult{Policy: p, Rule: "m", Kind: policy.MutateRule, Changed: true}
	unchanged := policy.RuleResult{Policy: p, Rule: "m", Kind: policy.MutateRule, Skip: "no patches applied", Unchanged: true}
	excluded := policy.RuleResult{Policy: p, Rule: "m", Kind: policy.MutateRule, Skip: "preconditions"}
	broken := policy.RuleResult{Policy: p, Rule: "m", Kind: policy.MutateRule, Ruling: policy.Ruling{Result: policy.Indeterminate, Reasons: []policy.Reason{{Message: "no"}}}}
	pin := []workload.Operation{{Op: "replace", Path: "/spec/containers/0/image", Value: "nginx@sha256:1"}}
	const uid = `,"uid":"u","creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"annotations":{"quaymaster.dev/images":"x"}`
	type call struct {
		metadata, spec string
		patch          []workload.Operation
		rules          []policy.RuleResult
		change         func(r *admission.Review)
	}
	for _, c := range []struct {
		reason string
		first  []call // at the mutating endpoint
		then   call
		want   string
	}{
		{"applied", []call{{named, image, nil, []policy.RuleResult{applied}, nil}}, call{named + uid, image, nil, nil, nil}, "m pass"},
		{"nothing is left to change", []call{{named, image, nil, []policy.RuleResult{unchanged}, nil}}, call{named + uid, image, nil, nil, nil}, "m pass"},
		{"excluded", []call{{named, image, nil, []policy.RuleResult{excluded}, nil}}, call{named + uid, image, nil, nil, nil}, "m skip"},
		{"it could not be evaluated, and a failure setting admitted the object", []call{{named, image, nil, []policy.RuleResult{broken}, nil}}, call{named + uid, image, nil, nil, nil}, "m error"},
		{"with a pinned image", []call{{named, image, pin, []policy.RuleResult{applied}, nil}}, call{named + uid, pinned, nil, nil, nil}, "m pass"},
		{"a generated name", []call{{generated, image, nil, []policy.RuleResult{applied}, nil}}, call{generated + `,"name":"app-x"` + uid, image, nil, nil, nil}, "m pass"},
		{"of two equal objects one failed", []call{{generated, image, nil, []policy.RuleResult{broken}, nil}, {generated, image, nil, []policy.RuleResult{applied}, nil}},
			call{generated + `,"name":"app-x"` + uid, image, nil, nil, nil}, "m error"},
		{"another webhook changed it", []call{{named, image, nil, []policy.RuleResult{applied}, nil}}, call{named + uid, pinned, nil, nil, nil}, ""},
		{"another object", []call{{named, image, nil, []policy.RuleResult{applied}, nil}}, call{`"name":"other","namespace":"shop"` + uid, image, nil, nil, nil}, ""},
		{"another user", []call{{named, image, nil, []policy.RuleResult{applied}, func(r *admission.Review) { r.User = "eve" }}}, call{named + uid, image, nil, nil, nil}, ""},
		{"a dry run", []call{{named, image, nil, []policy.RuleResult{applied}, func(r *admission.Review) { r.DryRun = true }}}, call{named + uid, image, nil, nil, nil}, ""},
		{"a dry run of the second call", []call{{named, image, nil, []policy.RuleResult{applied}, nil}}, call{named + uid, image, nil, nil, func(r *admission.Review) { r.DryRun = true }}, ""},
		{"denied by the second call", []call{{named, image, nil, []policy.RuleResult{applied}, nil}}, call{named + uid, image, nil, nil, func(r *admission.Review) { r.Allowed = false }}, ""},
		{"no mutation rule matches", []call{{named, image, nil, nil, nil}}, call{named + uid, image, nil, nil, nil}, ""},
	} {
		kept := &shelf{}
		recorder := Recorder{Log: slog.New(slog.DiscardHandler), Metrics: &counts{}, Sinks: Sinks{Mutated: []report.Sink{kept}}, Creations: &Creations{}}
		record := func(endpoint admission.Endpoint, one call) {
			object := newPod(t, one.metadata, one.spec)
			review := admission.Review{
				Endpoint: endpoint, Operation: "CREATE", Version: "v1", Kind: "Pod", Namespace: "shop", Name: "app", Cause: admission.Decided, Allowed: true,
				Outcome: gate.Outcome{
					Result: gate.Allow, Rules: one.rules, Object: object, Patch: one.patch,
					Subject: &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "shop", Name: object.Name(), Operation: "CREATE", Object: policy.ContentFrom(object)},
				},
			}
			if one.change != nil {
				one.change(&review)
			}
			recorder.Record(t.Context(), review)
		}
		for _, one := range c.first {
			record(admission.Mutate, one)
		}
		if len(kept.all) != 0 {
			t.Errorf("%s: passed on without a UID: %+v", c.reason, kept.all)
		}
		record(admission.Validate, c.then)
		got := ""
		for _, d := range kept.all {
			for _, r := range result.Of(d) {
				got += r.Rule + " " + string(r.Status)
				if r.Resource.UID != "u" {
					t.Errorf("%s: %+v", c.reason, r.Resource)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestCreationsAreBounded: results for objects that never come are dropped after a minute, and at most
// maxCreations wait.
func TestCreationsAreBounded(t *testing.T) {
	failed := []policy.RuleResult{{Kind: policy.MutateRule, Err: errors.New("no")}}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	decided := func(name string, after time.Duration) *report.Decided {
		object := newPod(t, `"name":"`+name+`","namespace":"shop"`, `"containers":[]`)
		return &report.Decided{
			Occasion: report.Occasion{Time: at.Add(after)},
			Outcome:  gate.Outcome{Object: object, Subject: &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "shop", Name: name, Object: policy.ContentFrom(object)}},
		}
	}
	var c Creations
	for i := range maxCreations + 1 {
		c.put(decided(fmt.Sprint("p", i), 0), failed)
	}
	for name, want := range map[string]bool{"p0": true, fmt.Sprint("p", maxCreations-1): true, fmt.Sprint("p", maxCreations): false} {
		if got := c.get(decided(name, time.Second)) != nil; got != want {
			t.Errorf("%s waits: %t", name, got)
		}
	}
	if c.get(decided("p0", creationAge)) != nil {
		t.Error("it waits longer")
	}
	c.put(decided("later", creationAge), failed)
	if len(c.waiting) != 1 || c.get(decided("later", creationAge)) == nil {
		t.Errorf("%d wait", len(c.waiting))
	}
}

// TestEqualCreationsMerge: of two equal objects the worse result of each rule counts, and the results
// wait as long as the first.
func TestEqualCreationsMerge(t *testing.T) {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "p"}
	again := *p // the policy was read again meanwhile
	pass := policy.Ruling{Result: policy.Pass}
	fail, unknown := policy.Ruling{Result: policy.Fail}, policy.Ruling{Result: policy.Indeterminate}
	rule := func(of *policy.Policy, name string, ruling policy.Ruling) policy.RuleResult {
		return policy.RuleResult{Policy: of, Rule: name, Kind: policy.MutateRule, Ruling: ruling}
	}
	broken := rule(p, "a", policy.Ruling{})
	broken.Err = errors.New("no")
	other := rule(&policy.Policy{Kind: "ClusterPolicy", Name: "other"}, "a", pass)
	type rules = []policy.RuleResult
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	object := newPod(t, `"generateName":"app-","namespace":"shop"`, `"containers":[]`)
	decided := func(after time.Duration) *report.Decided {
		return &report.Decided{
			Occasion: report.Occasion{Time: at.Add(after)},
			Outcome:  gate.Outcome{Object: object, Subject: &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "shop", Object: policy.ContentFrom(object)}},
		}
	}
	for _, row := range []struct {
		reason        string
		first, second rules
		want          string
	}{
		{"both pass", rules{rule(p, "a", pass), rule(p, "b", pass)}, rules{rule(p, "a", pass), rule(p, "b", pass)}, "p/a=pass p/b=pass"},
		{"another rule of each fails", rules{rule(p, "a", fail), rule(p, "b", pass)}, rules{rule(p, "a", pass), rule(p, "b", fail)}, "p/a=fail p/b=fail"},
		{"only the second fails", rules{rule(p, "a", pass)}, rules{rule(&again, "a", fail)}, "p/a=fail"},
		{"only the first fails", rules{rule(p, "a", fail)}, rules{rule(&again, "a", pass)}, "p/a=fail"},
		{"a failure is worse than an error", rules{rule(p, "a", fail)}, rules{rule(p, "a", unknown)}, "p/a=fail"},
		{"an error is worse than a success", rules{broken}, rules{rule(p, "a", pass)}, "p/a=no"},
		{"a rule of the second alone", rules{rule(p, "a", fail)}, rules{rule(p, "b", pass)}, "p/a=fail p/b=pass"},
		{"equal names in two policies", rules{rule(p, "a", fail)}, rules{other}, "other/a=pass p/a=fail"},
		{"a name twice in one policy", rules{rule(p, "a", pass), rule(p, "a", fail)}, rules{rule(p, "a", pass), rule(p, "a", pass)}, "p/a=fail p/a=pass"},
	} {
		var c Creations
		c.put(decided(0), row.first)
		before := c.get(decided(time.Second))
		held := slices.Clone(before)
		c.put(decided(time.Second), row.second)
		var got []string
		for _, r := range c.get(decided(creationAge - 1)) {
			text := string(r.Ruling.Result)
			if r.Err != nil {
				text = r.Err.Error()
			}
			got = append(got, r.Policy.Name+"/"+r.Rule+"="+text)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
		for i := range before {
			if before[i].Ruling.Result != held[i].Ruling.Result {
				t.Errorf("%s: the results that were returned before have changed", row.reason)
			}
		}
		if left := c.get(decided(creationAge)); left != nil {
			t.Errorf("%s: they wait longer than the first: %v", row.reason, left)
		}
	}
}
