package deletion_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/deletion"
	"github.com/quaymaster/quaymaster/policy/set"
)

// expiry deletes objects with a fixed result.
type expiry struct {
	naming
	decided policy.DeletionDecision
}

func (e expiry) Decide(context.Context, policy.Case) policy.DeletionDecision { return e.decided }

// covering is the scope of an exception with a fixed result.
type covering struct {
	is  bool
	err error
}

func (c covering) Covers(context.Context, *policy.Subject) (bool, error) { return c.is, c.err }

// TestDecide: an object is deleted only by a pass that neither an exception nor the protection may
// withdraw.
func TestDecide(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	pass := policy.DeletionDecision{Result: policy.Pass}
	failed := errors.New("no answer")
	named := func(scope policy.ExceptionScope) *policy.Exception {
		return &policy.Exception{Name: "keep", Namespace: "shop", Scope: scope, Rules: []policy.ExceptedRule{{Kind: "DeletingPolicy", Policy: "old", Rules: []string{"*"}}}}
	}
	of := func(change func(*policy.Exception)) *policy.Exception {
		e := named(nil)
		change(e)
		return e
	}
	for _, c := range []struct {
		reason    string
		decided   policy.DeletionDecision
		exception *policy.Exception
		at        string // the namespace of the object
		change    func(*policy.Policy)
		want      string
	}{
		{"a pass", pass, nil, "shop", nil, "delete"},
		{"another kind", policy.DeletionDecision{}, nil, "shop", nil, ""},
		{"a condition", policy.DeletionDecision{Result: policy.Skipped, Reasons: []policy.Reason{{Message: "too young"}}}, nil, "shop", nil, "keep: too young"},
		{"an error", policy.DeletionDecision{Result: policy.Indeterminate, Reasons: []policy.Reason{{Message: "no answer"}}}, nil, "shop", nil, "error: no answer"},
		{"a defect", policy.DeletionDecision{Result: policy.Fail, Reasons: []policy.Reason{{Message: "x"}}}, nil, "shop", nil, `error: the rule old returned "fail", which is a defect`},
		{"an exception", pass, named(nil), "shop", nil, "keep: the policy exception shop/keep leaves it alone"},
		{"an exception that covers the object", pass, named(covering{is: true}), "shop", nil, "keep: the policy exception shop/keep leaves it alone"},
		{"an exception for others", pass, named(covering{}), "shop", nil, "delete"},
		{"an exception that cannot be evaluated", pass, named(covering{err: failed}), "shop", nil, "error: evaluating the policy exception shop/keep: no answer"},
		{"an exception for images", pass, of(func(e *policy.Exception) { e.Images = []string{"a/*"} }), "shop", nil, "keep: the policy exception shop/keep leaves it alone"},
		{"an exception that ended", pass, of(func(e *policy.Exception) { e.Expires = now }), "shop", nil, "delete"},
		{"an exception that did not end", pass, of(func(e *policy.Exception) { e.Expires = now.Add(1) }), "shop", nil, "keep: the policy exception shop/keep leaves it alone"},
		{"an exception from another policy", pass, of(func(e *policy.Exception) { e.Rules[0].Policy = "young" }), "shop", nil, "delete"},
		{"an exception from another kind", pass, of(func(e *policy.Exception) { e.Rules[0].Kind = "MutatingPolicy" }), "shop", nil, "delete"},
		{"the namespace of the policy", pass, nil, "shop", func(p *policy.Policy) { p.Namespace = "shop" }, "delete"},
		{"another namespace", pass, nil, "shop", func(p *policy.Policy) { p.Namespace = "bank" }, ""},
		{"a broken policy", pass, nil, "shop", func(p *policy.Policy) { p.Broken = failed }, ""},
		{"a protected object", pass, nil, "kube-system", nil, "protected: keep: the namespace kube-system is protected"},
		{"a protected object that a condition keeps", policy.DeletionDecision{Result: policy.Skipped, Reasons: []policy.Reason{{Message: "too young"}}}, nil, "kube-system", nil, "keep: too young"},
	} {
		rule := expiry{decided: c.decided}
		p := &policy.Policy{Kind: "DeletingPolicy", Name: "old", ObjectRules: policy.ObjectRules{Deletions: []policy.Deletion{rule}}}
		if c.change != nil {
			c.change(p)
		}
		d := deletion.Decider{}
		if c.exception != nil {
			d.Exceptions = []*policy.Exception{c.exception}
		}
		subject := &policy.Subject{Kind: "Pod", Version: "v1", Namespace: c.at, Name: "web", Time: now}
		decision := d.Decide(t.Context(), p, rule, policy.Case{Subject: subject})
		got := string(decision.Verdict)
		if len(decision.Reasons) > 0 {
			got += ": " + decision.Reasons[0].Message
		}
		if decision.Protected {
			got = "protected: " + got
		}
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestUnprotected: without the protection, exceptions still keep objects.
func TestUnprotected(t *testing.T) {
	rule := expiry{decided: policy.DeletionDecision{Result: policy.Pass}}
	p := &policy.Policy{Kind: "DeletingPolicy", Name: "old"}
	about := policy.Case{Subject: &policy.Subject{Kind: "Pod", Version: "v1", Namespace: "kube-system", Name: "web"}}
	if got := (deletion.Decider{Unprotected: true}).Decide(t.Context(), p, rule, about); got.Verdict != deletion.Delete {
		t.Error(got)
	}
	excepted := []*policy.Exception{{Name: "keep", Rules: []policy.ExceptedRule{{Kind: "DeletingPolicy", Policy: "old", Rules: []string{"*"}}}}}
	if got := (deletion.Decider{Unprotected: true, Exceptions: excepted}).Decide(t.Context(), p, rule, about); got.Verdict != deletion.Keep {
		t.Error(got)
	}
}

// TestProtectedByLabel: the labels are those of the object.
func TestProtectedByLabel(t *testing.T) {
	rule := expiry{decided: policy.DeletionDecision{Result: policy.Pass}}
	for name, want := range map[string]deletion.Verdict{"quaymaster": deletion.Keep, "other": deletion.Delete} {
		object := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/name": name}}}
		subject := &policy.Subject{Kind: "ClusterRole", Name: "a", Object: policy.ContentOf(object)}
		if got := (deletion.Decider{}).Decide(t.Context(), &policy.Policy{Name: "a"}, rule, policy.Case{Subject: subject}); got.Verdict != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAtAdmission: a policy that deletes has no rule at admission, and is not empty.
func TestAtAdmission(t *testing.T) {
	p := &policy.Policy{Kind: "DeletingPolicy", Name: "old", ObjectRules: policy.ObjectRules{Deletions: []policy.Deletion{expiry{}}}}
	s, err := set.New(p)
	if err != nil {
		t.Fatal(err)
	}
	subject := &policy.Subject{Kind: "Pod", Version: "v1", Namespace: "shop", Name: "web", Operation: "CREATE"}
	if p.IsEmpty() || s.MayValidate(subject) || s.MayMutate(subject) || s.HasDownstream(subject) {
		t.Error("it takes part in admission, or is empty")
	}
}
