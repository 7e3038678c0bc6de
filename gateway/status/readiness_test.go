package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster/probe"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/configuration/reconcile"
)

// scripted is a prober that returns what a test sets.
type scripted struct {
	mu    sync.Mutex
	err   error
	asked [][]string
}

func (s *scripted) Probe(_ context.Context, marks ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, marks)
	return s.err
}

// fail sets the result of the next probes.
func (s *scripted) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// take returns the number of probes since the last call.
func (s *scripted) take() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.asked)
	s.asked = nil
	return n
}

func keptRound(mark string, warnings ...configuration.Warning) reconcile.Round {
	return reconcile.Round{
		Mutating: "m" + mark, Validating: "v" + mark, Warnings: warnings,
		Resources: []configuration.Resource{{Version: "v1", Name: "pods", Kind: "Pod", Namespaced: true}},
	}
}

func podPolicy(name, kind string) *policy.Policy {
	targets := []policy.Target{{Group: "*", Version: "*", Kind: kind}}
	return &policy.Policy{Kind: "ClusterPolicy", Name: name, Targets: targets, ObjectRules: policy.ObjectRules{Validations: []policy.Validation{validation{targets}}}}
}

// validation is a rule that is never evaluated.
type validation struct{ targets []policy.Target }

func (validation) Name() string                                               { return "r" }
func (v validation) Targets() []policy.Target                                 { return v.targets }
func (validation) Validate(context.Context, policy.Case) (_ policy.Validated) { return }

// conditions are the conditions that are to be written, each once.
type conditions struct {
	list []string
	last map[string]metav1.Condition
}

func (c *conditions) set(d record.Desired) {
	if c.last[d.Name] == d.Condition {
		return
	}
	c.last[d.Name] = d.Condition
	c.list = append(c.list, fmt.Sprintf("%s %s %s %d", d.Name, d.Condition.Status, d.Condition.Reason, d.Condition.ObservedGeneration))
}

func (c *conditions) take() string {
	defer func() { c.list = nil }()
	return strings.Join(c.list, "; ")
}

// lead makes a leader with two policies: a is in the first set, and b in the second.
func lead(t *testing.T) (*Reporter, *Readiness, *conditions, func()) {
	t.Helper()
	written := conditions{last: map[string]metav1.Condition{}}
	r := NewReadiness(slog.New(slog.DiscardHandler), func() {})
	tells := &Reporter{Leads: func() bool { return true }, Writes: func(string) bool { return true }, Readiness: r}
	r.Begin(true)
	resource := schema.GroupVersionResource{Group: kinds.KyvernoGroup, Version: "v1", Resource: "clusterpolicies"}
	announce := func() {
		for i, name := range []string{"a", "b"} {
			entry := catalog.Entry{Key: name, State: catalog.Ours, Policy: podPolicy(name, "Pod")}
			desired, is := tells.Desired(entry, Object{
				Object: documents.Object{Object: record.Object{Resource: resource, Name: name, UID: "u"}, Generation: int64(i + 5)}, Since: int64(i + 1),
			})
			if is {
				written.set(desired)
			}
		}
	}
	return tells, r, &written, announce
}

// TestReadiness: a policy is ready once the configurations of a set that holds it were seen in
// use, stays so while they change for another, and each condition is written once.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r, written, announce := lead(t)
		marks := func(mark string) [2]string { return [2]string{"m" + mark, "v" + mark} }
		for _, step := range []struct {
			reason string
			happen func()
			want   string
		}{
			{"a new leader has seen nothing yet, and leaves the status as it is", func() {}, ""},
			{"the first set is configured", func() { r.Kept(keptRound("1"), 1, nil, Native{}) }, ""},
			{"one API server is late", func() { r.result(marks("1"), errors.New("late")) }, ""},
			{"it is seen: b is in no configuration yet", func() { r.result(marks("1"), nil) }, "a True Active 5; b Unknown WebhookNotConfigured 6"},
			{"nothing new", func() {}, ""},
			{"b is configured", func() { r.Kept(keptRound("2"), 2, nil, Native{}) }, "b Unknown WebhookNotObserved 6"},
			{"what comes of the probe before is late", func() { r.result(marks("1"), nil) }, ""},
			{"an API server is late", func() { r.result(marks("2"), errors.New("late")) }, "b Unknown WebhookNotObserved 6"},
			{"it is seen", func() { r.result(marks("2"), nil) }, "b True Active 6"},
			{"a round that changes nothing", func() { r.Kept(keptRound("2"), 2, nil, Native{}) }, ""},
			{"a round that fails leaves both", func() { r.Broke(errors.New("no")) }, ""},
			{"another client changed a configuration", func() { r.Lost(); r.Kept(keptRound("3"), 2, nil, Native{}) }, "a Unknown WebhookNotObserved 5; b Unknown WebhookNotObserved 6"},
			{"it is seen again", func() { r.result(marks("3"), nil) }, "a True Active 5; b True Active 6"},
			{"another set with the same configurations", func() { r.Kept(keptRound("3"), 3, nil, Native{}) }, ""},
		} {
			step.happen()
			time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
			announce()
			if got := written.take(); got != step.want {
				t.Errorf("%s: %q, want %q", step.reason, got, step.want)
			}
		}
	})
}

// TestReadinessFails: what keeps a policy from being seen in force is its reason.
func TestReadinessFails(t *testing.T) {
	forbidden := fmt.Errorf("probe: %w", &probe.ForbiddenError{Err: errors.New("no")})
	for _, row := range []struct {
		reason string
		happen func(*Readiness)
		after  time.Duration
		want   string
	}{
		{"no round, within the grace time", func(*Readiness) {}, GraceTime - time.Second, ""},
		{"no round, after it", func(*Readiness) {}, GraceTime, "a Unknown WebhookNotConfigured 5; b Unknown WebhookNotConfigured 6"},
		{"rounds fail", func(r *Readiness) { r.Broke(errors.New("discovery")) }, GraceTime, "a Unknown WebhookNotConfigured 5; b Unknown WebhookNotConfigured 6"},
		{"probes fail", func(r *Readiness) {
			r.Kept(keptRound("1"), 2, nil, Native{})
			r.result([2]string{"m1", "v1"}, errors.New("late"))
		}, GraceTime, "a Unknown WebhookNotObserved 5; b Unknown WebhookNotObserved 6"},
		{"probes are not permitted", func(r *Readiness) {
			r.Kept(keptRound("1"), 2, nil, Native{})
			r.result([2]string{"m1", "v1"}, forbidden)
		}, 0, "a Unknown ProbeForbidden 5; b Unknown ProbeForbidden 6"},
		{"probes are not permitted, and a round changes nothing", func(r *Readiness) {
			r.Kept(keptRound("1"), 2, nil, Native{})
			r.result([2]string{"m1", "v1"}, forbidden)
			r.Kept(keptRound("1"), 2, nil, Native{})
		}, 0, "a Unknown ProbeForbidden 5; b Unknown ProbeForbidden 6"},
		{"probes were not permitted, and the configurations are new", func(r *Readiness) {
			r.Kept(keptRound("1"), 2, nil, Native{})
			r.result([2]string{"m1", "v1"}, forbidden)
			r.Kept(keptRound("2"), 2, nil, Native{})
		}, GraceTime, "a Unknown WebhookNotObserved 5; b Unknown WebhookNotObserved 6"},
		{"others keep the configurations", func(r *Readiness) { r.Begin(false) }, 0, "a Unknown WebhookNotManaged 5; b Unknown WebhookNotManaged 6"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, r, written, announce := lead(t)
				row.happen(r)
				time.Sleep(row.after) //nolint:forbidigo // the clock of the bubble
				announce()
				if got := written.take(); got != row.want {
					t.Errorf("%q, want %q", got, row.want)
				}
			})
		})
	}
}

// TestProbesUntilSeen counts the probes: each pair of configurations is probed until it was
// seen, ever more slowly, and not again.
func TestProbesUntilSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r, _, _ := lead(t)
		by := &scripted{}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Run(ctx, by)
		}()
		expect := func(reason string, after time.Duration, least, most int) {
			t.Helper()
			time.Sleep(after) //nolint:forbidigo // the clock of the bubble
			synctest.Wait()
			if n := by.take(); n < least || n > most {
				t.Errorf("%s: %d probes, want %d to %d", reason, n, least, most)
			}
		}
		expect("nothing is configured", time.Hour, 0, 0)
		r.Kept(keptRound("1"), 1, nil, Native{})
		expect("it is seen at once", time.Hour, 1, 1)
		r.Kept(keptRound("1"), 2, nil, Native{})
		expect("another set with the same configurations", time.Hour, 0, 0)
		by.fail(errors.New("late"))
		r.Kept(keptRound("2"), 3, nil, Native{})
		expect("an API server is late", time.Second, 4, 5)
		expect("it stays late", 10*time.Minute, 60, 70)
		r.Kept(keptRound("3"), 4, nil, Native{})
		expect("others come, and are probed at once", time.Millisecond, 1, 1)
		by.fail(nil)
		expect("they are seen", time.Hour, 1, 1)
		by.fail(&probe.ForbiddenError{Err: errors.New("no")})
		r.Kept(keptRound("4"), 5, nil, Native{})
		expect("not permitted", 5*time.Minute, 10, 11)
		stop()
		<-done
	})
}

// TestKindNotServed: a policy is not ready if none of its kinds is served, until the
// configurations for them were seen in use; nor is one of excluded namespaces alone.
func TestKindNotServed(t *testing.T) {
	sail := podPolicy("a", "Sail")
	both := podPolicy("a", "Sail")
	both.Validations = append(both.Validations, validation{[]policy.Target{{Group: "*", Version: "*", Kind: "Pod"}}})
	warning := configuration.Warning{Policy: "ClusterPolicy/a", Message: "the API server serves no kind Sail: install it"}
	excluded := keptRound("1", configuration.Warning{Policy: "ClusterPolicy/a", Message: "Pod: all its namespaces are excluded", Excluded: true})
	audited := podPolicy("a", "Pod")
	audited.AuditOnly = true
	scanned := podPolicy("a", "Pod")
	scanned.OnlyScanned = true
	served := keptRound("2")
	served.Resources = append(served.Resources, configuration.Resource{Group: "boats.example", Version: "v1", Name: "sails", Kind: "Sail"})
	for _, row := range []struct {
		reason  string
		policy  *policy.Policy
		rounds  []reconcile.Round
		seen    string
		status  metav1.ConditionStatus
		why     string
		message string
	}{
		{"no kind is served", sail, []reconcile.Round{keptRound("1", warning)}, "1", metav1.ConditionFalse, reasonKindNotServed, "none of the kinds that it names: Sail;"},
		{"one of two is served", both, []reconcile.Round{keptRound("1", warning)}, "1", metav1.ConditionTrue, reasonActive, "it is active, but the API server serves no kind Sail: install it"},
		{"the definition comes", sail, []reconcile.Round{keptRound("1", warning), served}, "1", metav1.ConditionUnknown, reasonNotObserved, ""},
		{"and a round more", sail, []reconcile.Round{keptRound("1", warning), served, served}, "1", metav1.ConditionUnknown, reasonNotObserved, ""},
		{"its namespaces are excluded", podPolicy("a", "Pod"), []reconcile.Round{excluded}, "1", metav1.ConditionFalse, reasonExcluded, "Pod: all its namespaces are excluded"},
		{"and it audits, as in scans", audited, []reconcile.Round{excluded}, "1", metav1.ConditionTrue, reasonActive, "all its namespaces are excluded"},
		{"and scans alone evaluate it", scanned, []reconcile.Round{excluded}, "1", metav1.ConditionTrue, reasonActive, "all its namespaces are excluded"},
		{"those of another policy are", podPolicy("b", "Pod"), []reconcile.Round{excluded}, "1", metav1.ConditionTrue, reasonActive, "it is active"},
		{"and is seen", sail, []reconcile.Round{keptRound("1", warning), served}, "2", metav1.ConditionTrue, reasonActive, "it is active"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			tells, r, _, _ := lead(t)
			for i, round := range row.rounds {
				r.Kept(round, 1, []*policy.Policy{row.policy}, Native{})
				if i == 0 || row.seen == "2" {
					r.result([2]string{round.Mutating, round.Validating}, nil)
				}
			}
			got, _ := tells.condition(catalog.Entry{State: catalog.Ours, Policy: row.policy}, Object{Since: 1})
			if got.Status != row.status || got.Reason != row.why || !strings.Contains(got.Message, row.message) {
				t.Errorf("%s %s: %s", got.Status, got.Reason, got.Message)
			}
		})
	}
}
