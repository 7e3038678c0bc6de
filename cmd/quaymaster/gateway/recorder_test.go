package gateway

import (
	"log/slog"
	"testing"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// tally counts what it is told.
type tally struct {
	admitted, decided int
	events            []record.Event
}

func (c *tally) Admitted(string, string, bool) { c.admitted++ }
func (c *tally) Decided(gate.Outcome)          { c.decided++ }
func (c *tally) Record(event record.Event)     { c.events = append(c.events, event) }

func TestRecorder(t *testing.T) {
	one, two := &policy.Policy{Kind: "ClusterPolicy", Name: "one"}, &policy.Policy{Kind: "Policy", Namespace: "shop", Name: "two"}
	failing := func(p *policy.Policy, rule string) policy.Decision {
		return policy.Decision{Check: &policy.Check{Policy: p, Rule: rule}, Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.MissingDigest}}}
	}
	outcome := gate.Outcome{Verdicts: []gate.Verdict{
		{Answer: gate.Deny, Decisions: []policy.Decision{failing(one, "a"), failing(one, "b"), failing(two, "a")}},
		{Answer: gate.Allow, Decisions: []policy.Decision{{Check: &policy.Check{Policy: one}, Result: policy.Pass, Reasons: []policy.Reason{{}}}}},
	}}
	base := admission.Review{Door: admission.Validate, Operation: "CREATE", Version: "v1", Kind: "Pod", Namespace: "shop", Name: "app", Cause: admission.Decided, Outcome: outcome}
	for _, c := range []struct {
		reason  string
		change  func(*admission.Review)
		decided int
		events  []string // kinds that they regard
	}{
		{"denied at CREATE: there will be no object, and its namespace is who may know", func(*admission.Review) {}, 1, []string{"Pod", "Pod"}},
		{"denied at UPDATE", func(r *admission.Review) { r.Operation = "UPDATE" }, 1, []string{"Pod", "Pod"}},
		{"admitted under audit", func(r *admission.Review) { r.Allowed = true }, 1, []string{"Pod", "Pod"}},
		{"admitted, and its name is not known yet", func(r *admission.Review) { r.Allowed, r.Name = true, "" }, 1, []string{"ClusterPolicy", "Policy"}},
		{"its name is yet to be generated", func(r *admission.Review) { r.Name = "app-*" }, 1, []string{"Pod", "Pod"}},
		{"a dry run", func(r *admission.Review) { r.DryRun = true }, 1, nil},
		{"admitted at the first door: the second tells", func(r *admission.Review) { r.Door, r.Allowed = admission.Mutate, true }, 1, nil},
		{"denied at the first door", func(r *admission.Review) { r.Door = admission.Mutate }, 1, []string{"Pod", "Pod"}},
		{"not asked", func(r *admission.Review) { r.Cause, r.Outcome = admission.NotAsked, gate.Outcome{} }, 0, nil},
		{"a policy document", func(r *admission.Review) { r.Door, r.Outcome = admission.Compile, gate.Outcome{} }, 0, nil},
	} {
		review, told := base, &tally{}
		c.change(&review)
		recorder{log: slog.New(slog.DiscardHandler), metrics: told, events: told}.Record(t.Context(), review)
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
