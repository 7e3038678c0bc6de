package reporting

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/api"
)

// counts counts its calls.
type counts struct {
	admitted, decided       int
	shadowed, shadowDecided int
	events                  []record.Event
}

func (c *counts) Admitted(string, string, bool) { c.admitted++ }
func (c *counts) Decided(gate.Outcome)          { c.decided++ }
func (c *counts) Shadowed(string, string, bool) { c.shadowed++ }
func (c *counts) DecidedInShadow(gate.Outcome)  { c.shadowDecided++ }
func (c *counts) Record(event record.Event)     { c.events = append(c.events, event) }

// TestEventsOfMirrors: what a mirror denies, could not find out or finds to differ is
// an event; that an image is or is not redirected is none.
func TestEventsOfMirrors(t *testing.T) {
	const here, there = "sha256:aa", "sha256:bb"
	about := func(code policy.Code) policy.Reason {
		return policy.Reason{Code: code, Path: "RegistryMirror/hub[0]", Message: "so it is", Expected: here, Found: there}
	}
	asked := policy.Decision{Check: &policy.Check{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "one"}}, Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.MissingDigest}}}
	unasked := about(policy.NotMirrored)
	unasked.Path = ""
	base := admission.Review{Endpoint: admission.Mutate, Operation: "CREATE", Version: "v1", Kind: "Pod", Namespace: "shop", Name: "app", Cause: admission.Decided}
	for _, c := range []struct {
		reason  string
		verdict gate.Verdict
		change  func(*admission.Review)
		events  []string // reason, action, kind that it regards, and the end of its note
	}{
		{"no target qualifies", gate.Verdict{Result: gate.Deny, Reasons: []policy.Reason{about(policy.NoMirror)}}, nil,
			[]string{"MirrorViolation Denied Pod mirror RegistryMirror/hub[0]: no-mirror: so it is"}},
		{"a target could not be queried", gate.Verdict{Result: gate.Error, Reasons: []policy.Reason{about(policy.NoMirror)}}, nil,
			[]string{"MirrorError Denied Pod mirror RegistryMirror/hub[0]: no-mirror: so it is"}},
		{"no entry could be asked", gate.Verdict{Result: gate.Error, Reasons: []policy.Reason{unasked}}, nil,
			[]string{"MirrorError Denied Pod mirror: not-mirrored: so it is"}},
		{"what a policy denies is another event", gate.Verdict{Result: gate.Deny, Decisions: []policy.Decision{asked}, Reasons: []policy.Reason{{Code: policy.MissingDigest}, unasked}}, nil,
			[]string{"MirrorError Denied Pod mirror: not-mirrored: so it is", "PolicyViolation Denied Pod policy ClusterPolicy/one/: missing-digest: ", "PolicyViolation Denied ClusterPolicy "}},
		{"the tag differs, at the mutating endpoint, which alone knows", gate.Verdict{Result: gate.Allow, Decisions: []policy.Decision{asked}, Warnings: []policy.Reason{about(policy.MirrorDiffers)}}, nil,
			[]string{"MirrorDiffers Admitted Pod mirror RegistryMirror/hub[0]: mirror-differs: so it is: sha256:bb, and sha256:aa is used"}},
		{"the object has no name", gate.Verdict{Result: gate.Deny, Reasons: []policy.Reason{about(policy.NoMirror)}}, func(r *admission.Review) { r.Name = "" },
			[]string{"MirrorViolation Denied RegistryMirror mirror RegistryMirror/hub[0]: no-mirror: so it is"}},
		{"a dry run", gate.Verdict{Result: gate.Deny, Reasons: []policy.Reason{about(policy.NoMirror)}}, func(r *admission.Review) { r.DryRun = true }, nil},
		{"it is redirected", gate.Verdict{Result: gate.Allow, Reasons: []policy.Reason{about(policy.Mirrored)}}, nil, nil},
		{"it stays where it is", gate.Verdict{Result: gate.Allow, Warnings: []policy.Reason{about(policy.NotMirrored)}}, nil, nil},
	} {
		review, told := base, &counts{}
		review.Allowed = c.verdict.Result.Admits()
		review.Outcome = gate.Outcome{Result: c.verdict.Result, Verdicts: []gate.Verdict{c.verdict}}
		if c.change != nil {
			c.change(&review)
		}
		Recorder{Log: slog.New(slog.DiscardHandler), Metrics: told, Events: told}.Record(t.Context(), review)
		var got []string
		for _, e := range told.events {
			_, note, _ := strings.Cut(e.Note, ", image , ")
			got = append(got, e.Reason+" "+e.Action+" "+e.Regarding.Kind+" "+note)
		}
		if !slices.Equal(got, c.events) {
			t.Errorf("%s: events %q, want %q", c.reason, got, c.events)
		}
	}
}

func TestRecorder(t *testing.T) {
	one, two := &policy.Policy{Kind: "ClusterPolicy", Name: "one"}, &policy.Policy{Kind: "Policy", Namespace: "shop", Name: "two"}
	failing := func(p *policy.Policy, rule string) policy.Decision {
		return policy.Decision{Check: &policy.Check{Policy: p, Rule: rule}, Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.MissingDigest}}}
	}
	outcome := gate.Outcome{Verdicts: []gate.Verdict{
		{Result: gate.Deny, Decisions: []policy.Decision{failing(one, "a"), failing(one, "b"), failing(two, "a")}},
		{Result: gate.Allow, Decisions: []policy.Decision{{Check: &policy.Check{Policy: one}, Result: policy.Pass, Reasons: []policy.Reason{{}}}}},
	}}
	base := admission.Review{Endpoint: admission.Validate, Operation: "CREATE", Version: "v1", Kind: "Pod", Namespace: "shop", Name: "app", Cause: admission.Decided, Outcome: outcome}
	for _, c := range []struct {
		reason  string
		change  func(*admission.Review)
		decided int
		events  []string // kinds that they regard
	}{
		{"denied at CREATE: there will be no object, and its namespace has an event as well", func(*admission.Review) {}, 1, []string{"Pod", "ClusterPolicy", "Pod", "Policy"}},
		{"denied at UPDATE", func(r *admission.Review) { r.Operation = "UPDATE" }, 1, []string{"Pod", "ClusterPolicy", "Pod", "Policy"}},
		{"admitted under audit", func(r *admission.Review) { r.Allowed = true }, 1, []string{"Pod", "ClusterPolicy", "Pod", "Policy"}},
		{"admitted, and its name is not known yet", func(r *admission.Review) { r.Allowed, r.Name = true, "" }, 1, []string{"ClusterPolicy", "Policy"}},
		{"its name is yet to be generated", func(r *admission.Review) { r.Name = "app-*" }, 1, []string{"Pod", "ClusterPolicy", "Pod", "Policy"}},
		{"a dry run", func(r *admission.Review) { r.DryRun = true }, 1, nil},
		{"admitted at the mutating endpoint: the validating one records it", func(r *admission.Review) { r.Endpoint, r.Allowed = admission.Mutate, true }, 1, nil},
		{"denied at the mutating endpoint", func(r *admission.Review) { r.Endpoint = admission.Mutate }, 1, []string{"Pod", "ClusterPolicy", "Pod", "Policy"}},
		{"not asked", func(r *admission.Review) { r.Cause, r.Outcome = admission.NotAsked, gate.Outcome{} }, 0, nil},
		{"a policy document", func(r *admission.Review) { r.Endpoint, r.Outcome = admission.Policies, gate.Outcome{} }, 0, nil},
	} {
		review, told := base, &counts{}
		c.change(&review)
		Recorder{Log: slog.New(slog.DiscardHandler), Metrics: told, Events: told}.Record(t.Context(), review)
		if told.admitted != 1 || told.decided != c.decided || len(told.events) != len(c.events) {
			t.Errorf("%s: admitted %d, decided %d, events %+v", c.reason, told.admitted, told.decided, told.events)
			continue
		}
		for i, kind := range c.events {
			if told.events[i].Regarding.Kind != kind {
				t.Errorf("%s: event %d regards a %s, want a %s", c.reason, i, told.events[i].Regarding.Kind, kind)
			}
		}
	}
}

// TestEventsOfPolicies: the event on a policy has the reason of the event on the object, and is related to
// it. On a cluster-wide policy, in another namespace than the object, it names neither the image nor
// the message.
func TestEventsOfPolicies(t *testing.T) {
	wide, own := &policy.Policy{Kind: "ValidatingPolicy", Name: "wide"}, &policy.Policy{Kind: "Policy", Namespace: "shop", Name: "own"}
	web := policy.Image{Container: "web", Ref: image.MustParse("registry.example/shop/web:1")}
	unsigned := policy.Reason{Code: policy.Unsigned, Message: "no signature found"}
	verdict := func(p *policy.Policy, is policy.Result) gate.Outcome {
		d := policy.Decision{Check: &policy.Check{Policy: p, Rule: "r"}, Result: is, Reasons: []policy.Reason{unsigned}}
		return gate.Outcome{Result: gate.Deny, Verdicts: []gate.Verdict{{Image: web, Result: gate.Deny, Decisions: []policy.Decision{d}}}}
	}
	ruled := func(rule policy.RuleResult) gate.Outcome {
		rule.Rule = "r"
		return gate.Outcome{Result: gate.Deny, Rules: []policy.RuleResult{rule}}
	}
	const about, prefix = "Pod shop/app: ", "Pod shop/app: container web, image registry.example/shop/web:1, policy "
	for _, c := range []struct {
		reason   string
		outcome  gate.Outcome
		code     string
		of       string // the policy's kind
		on, note string // of the object, and of the policy
	}{
		{"an image, a policy of the namespace", verdict(own, policy.Fail), "PolicyViolation", "Policy", prefix + "Policy/shop/own/r: unsigned: no signature found", prefix + "Policy/shop/own/r: unsigned: no signature found"},
		{"an image, a cluster-wide policy", verdict(wide, policy.Fail), "PolicyViolation", "ValidatingPolicy", prefix + "ValidatingPolicy/wide/r: unsigned: no signature found", about + "rule r: unsigned"},
		{"an image that could not be verified", verdict(wide, policy.Indeterminate), "PolicyError", "ValidatingPolicy", prefix + "ValidatingPolicy/wide/r: unsigned: no signature found", about + "rule r: unsigned"},
		{"an object", ruled(policy.RuleResult{Policy: own, Ruling: policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Violated, Message: "no label"}}}}), "PolicyViolation", "Policy", about + "policy Policy/shop/own/r: no label", about + "policy Policy/shop/own/r: no label"},
		{"an indeterminate rule", ruled(policy.RuleResult{Policy: wide, Ruling: policy.Ruling{Result: policy.Indeterminate, Reasons: []policy.Reason{{Code: policy.TooMuch, Message: "too long"}}}}), "PolicyError", "ValidatingPolicy", about + "policy ValidatingPolicy/wide/r: too long", about + "rule r: bound-reached"},
		{"an error", ruled(policy.RuleResult{Policy: wide, Err: errors.New("gone")}), "PolicyError", "ValidatingPolicy", about + "policy ValidatingPolicy/wide/r could not be evaluated: gone", about + "rule r: policy-error"},
	} {
		told := &counts{}
		Recorder{Log: slog.New(slog.DiscardHandler), Metrics: told, Events: told}.Record(t.Context(), admission.Review{
			Endpoint: admission.Validate, Operation: "CREATE", Version: "v1", Kind: "Pod", Namespace: "shop", Name: "app", Cause: admission.Decided, Outcome: c.outcome,
		})
		if len(told.events) != 2 {
			t.Errorf("%s: %d events, want one on the object and one on the policy", c.reason, len(told.events))
			continue
		}
		on, of := told.events[0], told.events[1]
		if on.Regarding.Kind != "Pod" || on.Related.Kind != "" || of.Regarding.Kind != c.of || of.Related != on.Regarding {
			t.Errorf("%s: %+v, %+v", c.reason, on, of)
		}
		if on.Reason != c.code || of.Reason != c.code || on.Note != c.on || of.Note != c.note || on.Action != "Denied" || of.Action != "Denied" {
			t.Errorf("%s: %s %q and %s %q, want %s %q and %q", c.reason, on.Reason, on.Note, of.Reason, of.Note, c.code, c.on, c.note)
		}
	}
}

// TestUndecidedRequestsAreRateLimited: requests without a decision are logged at a bounded rate,
// and a defect each time.
func TestUndecidedRequestsAreRateLimited(t *testing.T) {
	for _, c := range []struct {
		cause api.Cause
		least int
		most  int
	}{
		{api.Indeterminate, 1, 20},
		{api.QueueFull, 1, 20},
		{api.TimedOut, 1, 20},
		{api.Unauthenticated, 0, 0},
		{api.Panicked, 1000, 1000},
	} {
		var text bytes.Buffer
		logged := slog.New(slog.NewJSONHandler(&text, nil))
		told := APIRecorder{Recorder{Log: logged, Strangers: webhook.NewErrorLog(logged), Metrics: &counts{}}, "api"}
		for range 1000 {
			told.Record(t.Context(), api.Call{Cause: c.cause, Err: errors.New("why")})
		}
		if n := strings.Count(text.String(), "\n"); n < c.least || n > c.most {
			t.Errorf("%s: %d lines, want %d to %d", c.cause, n, c.least, c.most)
		}
	}
}
