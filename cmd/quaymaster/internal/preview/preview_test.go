package preview_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/preview"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/deletion"
)

// daily is a rule with a run a day; zero is one without.
type daily struct{ next time.Time }

func (daily) Name() string                    { return "old" }
func (daily) Targets() []policy.Target        { return nil }
func (daily) Labels() string                  { return "" }
func (daily) Propagation() policy.Propagation { return "Orphan" }
func (d daily) Next(time.Time) time.Time      { return d.next }
func (daily) Decide(context.Context, policy.Case) policy.DeletionDecision {
	return policy.DeletionDecision{}
}

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// TestRun counts the decisions and lists the objects of them, up to the bound.
func TestRun(t *testing.T) {
	p := preview.New(preview.Defaults("quaymaster"), noon())
	of := &policy.Policy{Kind: "DeletingPolicy", Name: "old"}
	run := p.Rule(of, daily{noon().Add(time.Hour)})
	if again := p.Rule(of, daily{}); again != run {
		t.Error("the rule has two runs")
	}
	reason := func(text string) []policy.Reason { return []policy.Reason{{Message: text}} }
	run.Add(preview.Object{Kind: "Pod", Namespace: "shop", Name: "a\x1b[2J"}, deletion.Decision{Verdict: deletion.Delete})
	run.Add(preview.Object{Kind: "Node", Name: "b"}, deletion.Decision{Verdict: deletion.Delete})
	run.Add(preview.Object{Kind: "Pod", Namespace: "kube-system", Name: "c"}, deletion.Decision{Verdict: deletion.Keep, Protected: true, Reasons: reason("protected")})
	run.Add(preview.Object{Kind: "Pod", Namespace: "shop", Name: "d"}, deletion.Decision{Verdict: deletion.Keep, Reasons: reason("too young")})
	run.Add(preview.Object{Kind: "Pod", Namespace: "shop", Name: "e"}, deletion.Decision{})
	if p.Incomplete() {
		t.Error("nothing failed so far")
	}
	run.Add(preview.Object{Kind: "Pod", Namespace: "shop", Name: "f"}, deletion.Decision{Verdict: deletion.Unknown, Reasons: reason("no answer")})
	if !p.Incomplete() {
		t.Error("an object could not be evaluated")
	}
	var b strings.Builder
	p.Text(&b)
	want := `DeletingPolicy/old: the run at 2026-03-01T13:00:00Z would delete 2, 1 kept, 1 protected, 1 could not be evaluated
  delete  Pod/shop/a\x1b[2J
  delete  Node/b
  keep    Pod/kube-system/c: protected
  keep    Pod/shop/f: could not be evaluated, and is kept: no answer
protected: the namespaces kube-node-lease, kube-public, kube-system, quaymaster; Namespaces, CustomResourceDefinitions, policies, and what configures admission
`
	if got := b.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestLimits: more objects than a run deletes are announced, and more than the bound are counted.
func TestLimits(t *testing.T) {
	for n, want := range map[int][]string{
		100:  {"would delete 100\n"},
		101:  {"would delete 101\n", "limit   a run stops after 100 objects"},
		1001: {"would delete 1001\n", "limit   a run stops after 100 objects", "... and 1 more"},
	} {
		p := preview.New(preview.Defaults(""), noon())
		run := p.Rule(&policy.Policy{Kind: "DeletingPolicy", Name: "old"}, daily{})
		for i := range n {
			run.Add(preview.Object{Kind: "Pod", Name: fmt.Sprint(i)}, deletion.Decision{Verdict: deletion.Delete})
		}
		var b strings.Builder
		p.Text(&b)
		for _, text := range []string{"limit   ", "... and"} {
			wanted := strings.Contains(strings.Join(want, "\n"), text)
			if strings.Contains(b.String(), text) != wanted {
				t.Errorf("%d: %q: %t", n, text, !wanted)
			}
		}
		if !strings.HasPrefix(b.String(), "DeletingPolicy/old: no run is due "+want[0]) || len(run.Delete) != min(n, 1000) {
			t.Errorf("%d: %.100s, %d listed", n, b.String(), len(run.Delete))
		}
	}
}

func ExamplePreview() {
	p := preview.New(preview.Defaults(""), noon())
	run := p.Rule(&policy.Policy{Kind: "DeletingPolicy", Name: "old"}, daily{noon().Add(time.Hour)})
	run.Add(preview.Object{Kind: "Pod", Namespace: "shop", Name: "job"}, deletion.Decision{Verdict: deletion.Delete})
	var b strings.Builder
	p.Text(&b)
	fmt.Print(strings.SplitAfter(b.String(), "\n")[0])
	// Output: DeletingPolicy/old: the run at 2026-03-01T13:00:00Z would delete 1
}
