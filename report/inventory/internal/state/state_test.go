package state_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/evidence"
	"github.com/quaymaster/quaymaster/report/inventory/internal/state"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

var begin = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func newPacker(t *testing.T) *evidence.Packer {
	t.Helper()
	p, err := evidence.NewPacker()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// evaluation is one of an image by rules with these results.
func evaluation(after time.Duration, result gate.Result, matched bool, rules map[string]policy.Result) state.Evaluation {
	image := &report.Image{Reference: "r.example/web:1", Result: result, Matched: matched}
	for _, name := range []string{"a", "b", "c"} {
		if of, ok := rules[name]; ok {
			d := report.Decision{Policy: report.Policy{Kind: "K", Name: name}, Rule: "r", Result: of}
			if of != policy.Pass {
				d.Effect = report.EffectWarn
				d.Reasons = []policy.Reason{{Code: "unsigned", Message: name + " failed"}}
			}
			image.Decisions = append(image.Decisions, d)
		}
	}
	return state.Evaluation{Occasion: report.Occasion{Time: begin.Add(after)}, Image: image}
}

// TestGravestUseIsShown: of the uses of an image the gravest counts, whichever was last.
func TestGravestUseIsShown(t *testing.T) {
	of := map[verdict.Verdict]state.Evaluation{
		verdict.Unchecked: evaluation(0, gate.Unchecked, false, nil),
		verdict.Allowed:   evaluation(0, gate.Allow, true, map[string]policy.Result{"a": policy.Pass}),
		verdict.Warned:    evaluation(0, gate.Allow, true, map[string]policy.Result{"a": policy.Fail}),
		verdict.Errored:   evaluation(0, gate.Error, true, nil),
		verdict.Denied:    evaluation(0, gate.Deny, true, nil),
	}
	order := []verdict.Verdict{verdict.Unchecked, verdict.Allowed, verdict.Warned, verdict.Errored, verdict.Denied}
	for n, a := range order {
		for k, b := range order {
			var s state.States
			p := newPacker(t)
			first := s.Run(p, nil, of[a])
			second := s.Run(p, nil, of[b])
			if got, want := s.Shown(true, false).Verdict, order[max(n, k)]; got != want {
				t.Errorf("%s and %s: %s, want %s", a, b, got, want)
			}
			second = s.Run(p, second, of[a]) // the same use again replaces its own state
			if got := s.Shown(true, false).Verdict; got != a {
				t.Errorf("%s, then %s and %s by one use: %s", a, b, a, got)
			}
			second = s.Run(p, second, of[b])
			s.Leave(first)
			if got := s.Shown(true, false).Verdict; got != b {
				t.Errorf("%s is gone, and %s remains: %s", a, b, got)
			}
			s.Leave(second)
			if got := s.Shown(false, false).Verdict; got != b {
				t.Errorf("the last use is gone: %s, want %s", got, b)
			}
			s.Run(p, nil, of[a])
			if got := s.Shown(true, false).Verdict; got != a {
				t.Errorf("a state without uses counts: %s, want %s", got, a)
			}
		}
	}
}

// TestResultsOfAllUses: a policy that fails for one use fails for the image, and counts once.
func TestResultsOfAllUses(t *testing.T) {
	var s state.States
	p := newPacker(t)
	prod := s.Run(p, nil, evaluation(0, gate.Allow, true, map[string]policy.Result{"a": policy.Fail, "b": policy.Pass}))
	s.Run(p, nil, evaluation(1, gate.Allow, true, map[string]policy.Result{"a": policy.Pass, "b": policy.Fail, "c": policy.Pass}))
	text := func() (found string) {
		for _, r := range s.Results(true, false) {
			found += fmt.Sprint(r.Policy, "=", r.Kind, " ")
		}
		return found
	}
	if got, want := text(), fmt.Sprintf("K/a=%d K/b=%d K/c=%d ", verdict.Fail, verdict.Fail, verdict.Pass); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.Run(p, prod, evaluation(2, gate.Allow, true, map[string]policy.Result{"a": policy.Pass, "b": policy.Pass}))
	if got, want := text(), fmt.Sprintf("K/a=%d K/b=%d K/c=%d ", verdict.Pass, verdict.Fail, verdict.Pass); got != want {
		t.Errorf("after its repair: %s, want %s", got, want)
	}
}

// TestLostUse: the state of a use that is no longer distinguished counts until a scan finds it.
func TestLostUse(t *testing.T) {
	var s state.States
	p := newPacker(t)
	pass, fail := evaluation(0, gate.Allow, true, nil), evaluation(0, gate.Deny, true, nil)
	s.Run(p, nil, pass)
	s.Lose(s.Run(p, nil, fail))
	s.Lose(s.Run(p, nil, pass)) // a lighter one does not replace it
	if got := s.Shown(true, false).Verdict; got != verdict.Denied {
		t.Errorf("a lost use: %s", got)
	}
	s.Found()
	if got := s.Shown(true, false).Verdict; got != verdict.Allowed {
		t.Errorf("after a scan: %s", got)
	}
}

// TestStatesAreBounded: equal results share a state, few that differ are kept, and a graver verdict
// always is.
func TestStatesAreBounded(t *testing.T) {
	var s state.States
	p := newPacker(t)
	s.Run(p, nil, evaluation(0, gate.Allow, true, nil))
	one := s.Size()
	for range 1000 {
		s.Run(p, nil, evaluation(0, gate.Allow, true, nil))
	}
	if s.Size() != one {
		t.Errorf("1001 equal results take %d bytes, and one %d", s.Size(), one)
	}
	for n := range 100 {
		e := evaluation(0, gate.Allow, true, nil)
		e.Image.Decisions = []report.Decision{{Policy: report.Policy{Kind: "K", Name: fmt.Sprint(n)}, Result: policy.Pass}}
		s.Run(p, nil, e)
	}
	if got := len(s.Results(true, false)); got == 0 || got > 8 {
		t.Errorf("%d of 100 differing results are kept, want at most 8", got)
	}
	s.Run(p, nil, evaluation(0, gate.Deny, true, nil))
	if got := s.Shown(true, false).Verdict; got != verdict.Denied {
		t.Errorf("a graver one above the bound: %s", got)
	}
}
