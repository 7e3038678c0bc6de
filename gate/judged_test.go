package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// judging is a rule that asks for signatures of authorities and lets a function
// judge the answers.
type judging struct {
	authorities []*verify.Authority
	check       policy.Check
	action      policy.Action
	ofObject    bool
	judge       func(given []policy.Given) policy.Judgement
}

func (judging) Name() string                                  { return "judged" }
func (judging) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (r judging) AppliesToObject() bool                       { return r.ofObject }

func (r judging) Plan(_ context.Context, _ *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	plan := policy.RulePlan{Judge: &asked{r.judge}, Action: r.action}
	for _, found := range images {
		check := r.check
		check.Image, check.Entry, check.Action = found, "spec", r.action
		for _, a := range r.authorities {
			check.Asks = append(check.Asks, policy.Question{Authority: a, Role: attest.Signature})
		}
		plan.Checks = append(plan.Checks, check)
	}
	return plan, nil
}

type asked struct {
	judge func(given []policy.Given) policy.Judgement
}

func (a *asked) Judge(_ context.Context, given []policy.Given) policy.Judgement {
	return a.judge(given)
}

// signers returns the verified signatures, and those that could not be verified.
func signers(g policy.Given) (facts []verify.Fact, gaps []error) {
	for _, q := range g.Check.Asks {
		answer := g.Answers(q)
		facts, gaps = append(facts, answer.Facts...), append(gaps, answer.Gaps...)
	}
	return facts, gaps
}

// eachSigned wants so many signatures on each image.
func eachSigned(atLeast int) func([]policy.Given) policy.Judgement {
	return func(given []policy.Given) policy.Judgement {
		var out policy.Judgement
		for _, g := range given {
			facts, gaps := signers(g)
			d := policy.Decision{Result: policy.Pass, Facts: facts, Reasons: []policy.Reason{{Code: policy.Verified, Message: "judged"}}}
			switch {
			case len(facts) >= atLeast:
			case len(gaps) > 0:
				d = policy.Decision{Result: policy.Indeterminate, Reasons: []policy.Reason{policy.LookReason(gaps[0], "spec")}}
			default:
				d = policy.Decision{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Unsigned, Message: "judged"}}}
			}
			out.Decisions = append(out.Decisions, d)
		}
		return out
	}
}

// inAll wants so many signatures in all images together, and holds it against the
// object.
func inAll(exactly int) func([]policy.Given) policy.Judgement {
	return func(given []policy.Given) policy.Judgement {
		var out policy.Judgement
		count, open := 0, 0
		for _, g := range given {
			facts, gaps := signers(g)
			count, open = count+len(facts), open+len(gaps)
			out.Decisions = append(out.Decisions, policy.Decision{Result: policy.Pass, Facts: facts, Reasons: []policy.Reason{{Code: policy.Verified, Message: "judged"}}})
		}
		switch {
		case open > 0:
			out.Object = policy.Ruling{Result: policy.Indeterminate, Reasons: []policy.Reason{{Code: policy.Unavailable, Message: "open"}}}
		case count != exactly:
			out.Object = policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Denied, Message: fmt.Sprintf("%d signatures", count)}}}
		}
		return out
	}
}

func TestJudge(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	good, bad := h.Build("good", "1", "good"), h.Build("bad", "1", "bad")
	must(0, legacy(h, good))(t)
	key, stranger := keyAuthority(h.key), keyAuthority(h.stranger)
	say := func(result policy.Result) func([]policy.Given) policy.Judgement {
		return func(given []policy.Given) policy.Judgement {
			out := policy.Judgement{}
			for range given {
				out.Decisions = append(out.Decisions, policy.Decision{Result: result, Reasons: []policy.Reason{{Code: policy.Denied, Message: "said"}}})
			}
			return out
		}
	}
	object := func(result policy.Result) func([]policy.Given) policy.Judgement {
		return func(given []policy.Given) policy.Judgement {
			out := eachSigned(0)(given)
			out.Object = policy.Ruling{Result: result, Reasons: []policy.Reason{{Code: policy.Denied, Message: "of the object"}}}
			return out
		}
	}
	for _, c := range []struct {
		reason string
		rule   judging
		images []string
		want   gate.Result
		code   policy.Code
	}{
		{"signed by one of two", judging{authorities: []*verify.Authority{key, stranger}, judge: eachSigned(1)}, []string{good.Name}, gate.Allow, policy.Verified},
		{"not signed", judging{authorities: []*verify.Authority{key, stranger}, judge: eachSigned(1)}, []string{bad.Name}, gate.Deny, policy.Unsigned},
		{"one image of two is not signed", judging{authorities: []*verify.Authority{key}, judge: eachSigned(1)}, []string{good.Name, bad.Name}, gate.Deny, policy.Unsigned},
		{"both wanted and one there", judging{authorities: []*verify.Authority{key, stranger}, judge: eachSigned(2)}, []string{good.Name}, gate.Deny, policy.Unsigned},
		{"one signature in all, as wanted", judging{authorities: []*verify.Authority{key, stranger}, judge: inAll(1)}, []string{good.Name, bad.Name}, gate.Allow, policy.Verified},
		{"one signature in all, two wanted", judging{authorities: []*verify.Authority{key, stranger}, judge: inAll(2)}, []string{good.Name, bad.Name}, gate.Deny, policy.Denied},
		{"the object fails", judging{judge: object(policy.Fail)}, []string{good.Name}, gate.Deny, policy.Denied},
		{"the object is undecided", judging{judge: object(policy.Indeterminate)}, []string{good.Name}, gate.Error, policy.Denied},
		{"the object passes", judging{judge: object(policy.Pass)}, []string{good.Name}, gate.Allow, policy.Verified},
		{"under audit a failing object is admitted", judging{judge: object(policy.Fail), action: policy.Audit}, []string{good.Name}, gate.Allow, policy.Verified},
		{"no image and a failing object", judging{judge: object(policy.Fail), ofObject: true}, nil, gate.Deny, policy.Denied},
		{"no image, and the rule matches images only", judging{judge: object(policy.Fail)}, nil, gate.Unchecked, ""},
		{"a proof is required and there is none", judging{judge: say(policy.Pass), check: policy.Check{Claims: policy.Claims{Required: true}}}, []string{good.Name}, gate.Deny, policy.Unverified},
		{"a proof is required, and there", judging{authorities: []*verify.Authority{key}, judge: eachSigned(0), check: policy.Check{Claims: policy.Claims{Required: true}}}, []string{good.Name}, gate.Allow, policy.Verified},
		{"no proof is required", judging{judge: say(policy.Pass)}, []string{good.Name}, gate.Allow, policy.Denied},
		{"the tag does not resolve and is to be pinned", judging{judge: say(policy.Pass), check: policy.Check{Pinning: policy.Pinning{MutateDigest: true}}}, []string{h.Registry.Host() + "/none:1"}, gate.Error, policy.ImageNotFound},
		{"the tag does not resolve and is not asked for", judging{judge: say(policy.Pass)}, []string{h.Registry.Host() + "/none:1"}, gate.Allow, policy.Denied},
		{"only digests will do", judging{judge: say(policy.Pass), check: policy.Check{Pinning: policy.Pinning{VerifyDigest: true}}}, []string{good.Name}, gate.Deny, policy.MissingDigest},
		{"an unknown result", judging{judge: say("maybe")}, []string{good.Name}, gate.Error, policy.Internal},
		{"too few decisions", judging{judge: func([]policy.Given) policy.Judgement { return policy.Judgement{} }}, []string{good.Name}, gate.Error, policy.Internal},
		{"a panic", judging{judge: func([]policy.Given) policy.Judgement { panic("judge") }}, []string{good.Name}, gate.Error, policy.Internal},
		{"a pass without a reason", judging{judge: func(given []policy.Given) policy.Judgement {
			return policy.Judgement{Decisions: []policy.Decision{{Result: policy.Pass}}}
		}}, []string{good.Name}, gate.Error, policy.Internal},
	} {
		for _, warm := range []bool{false, true} {
			g := h.gate(t, c.rule)
			if warm {
				g.Decide(t.Context(), pod(t, c.images...))
			}
			outcome := g.Decide(t.Context(), pod(t, c.images...))
			if outcome.Result != c.want {
				t.Errorf("%s (warm: %t): %s, want %s: %+v", c.reason, warm, outcome.Result, c.want, outcome)
			}
			if !hasCode(outcome, c.code) {
				t.Errorf("%s (warm: %t): no reason %q in %+v", c.reason, warm, c.code, outcome)
			}
		}
	}
}

func hasCode(o gate.Outcome, code policy.Code) bool {
	reasons := slices.Clone(o.Reasons)
	for _, v := range o.Verdicts {
		reasons = append(append(reasons, v.Reasons...), v.Warnings...)
	}
	return code == "" || slices.ContainsFunc(reasons, func(r policy.Reason) bool { return r.Code == code })
}

// TestRequiredByAnother shows that a proof that one policy has is enough for
// another that requires one, and that a failed one is not.
func TestRequiredByAnother(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	good, bad := h.Build("good", "1", "good"), h.Build("bad", "1", "bad")
	must(0, legacy(h, good))(t)
	catchAll := judging{judge: eachSigned(0), check: policy.Check{Claims: policy.Claims{Required: true}}}
	proving := judging{authorities: []*verify.Authority{keyAuthority(h.key)}, judge: eachSigned(1), action: policy.Audit}
	g := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Rules: []policy.Rule{catchAll, renamed{proving}}})
	if outcome := g.Decide(t.Context(), pod(t, good.Name)); outcome.Result != gate.Allow {
		t.Errorf("proved by another rule: %+v", outcome)
	}
	if outcome := g.Decide(t.Context(), pod(t, bad.Name)); outcome.Result != gate.Deny || !hasCode(outcome, policy.Unverified) {
		t.Errorf("not verified by any rule: %+v", outcome)
	}
}

type renamed struct{ judging }

func (renamed) Name() string { return "other" }

// TestWarmChoice counts that an image signed by one of two keys costs nothing once that is cached,
// although the other key's signature is unknown; a judge that requires it causes a request.
func TestWarmChoice(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "1", "app")
	must(0, legacy(h, image))(t)
	clock := &clock{}
	both := []*verify.Authority{keyAuthority(h.stranger), keyAuthority(h.key)}
	for _, c := range []struct {
		reason   string
		rule     policy.Rule
		requests bool
		want     gate.Result
	}{
		{"a threshold of one", signedBy(h.stranger, h.key), false, gate.Allow},
		{"a judge that requires one", judging{authorities: both, judge: eachSigned(1)}, false, gate.Allow},
		{"a judge of the object, which asks about both", judging{authorities: both, judge: inAll(1)}, true, gate.Allow},
		{"a judge that requires both", judging{authorities: both, judge: eachSigned(2)}, true, gate.Deny},
	} {
		g := h.gate(t, c.rule, gate.WithClock(clock.now), gate.WithAges(gate.Ages{None: time.Second}))
		g.Decide(t.Context(), pod(t, image.ByDigest()))
		clock.advance(time.Minute) // "none found" is forgotten
		outcome := g.Decide(t.Context(), pod(t, image.ByDigest()))
		if outcome.Result != c.want {
			t.Errorf("%s: %+v", c.reason, outcome)
		}
		if got := outcome.Cost.Requests > 0; got != c.requests {
			t.Errorf("%s: %d requests", c.reason, outcome.Cost.Requests)
		}
	}
}

// TestColdDenialIsFoundOutOnce counts the calls of a judge about an image that is refused: alone,
// to determine whether looking further could help, and with the others. It is not called again,
// although one of the signers was cached.
func TestColdDenialIsFoundOutOnce(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, bare := h.Build("signed", "1", "signed"), h.Build("bare", "1", "bare")
	must(0, legacy(h, signed))(t)
	both := []*verify.Authority{keyAuthority(h.stranger), keyAuthority(h.key)}
	for _, c := range []struct {
		reason string
		image  gatetest.Image
	}{
		{"signed by one of two", signed},
		{"not signed", bare},
	} {
		heard := 0
		g := h.gate(t, judging{authorities: both, judge: func(given []policy.Given) policy.Judgement {
			heard++
			return eachSigned(2)(given)
		}})
		if outcome := g.Decide(t.Context(), pod(t, c.image.ByDigest())); outcome.Result != gate.Deny || heard != 2 {
			t.Errorf("%s: %s after it was heard %d times, want 2", c.reason, outcome.Result, heard)
		}
	}
}

// TestJudgeOfIndex shows that a platform's manifest is as good as the proved index
// that lists it, and one that no index lists is not.
func TestJudgeOfIndex(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	child, stray := h.Build("app", "child", "child"), h.Build("app", "stray", "stray")
	index := h.BuildIndex("app", "1", child)
	must(0, h.SignLegacy(index, verifytest.Claim{Signer: h.key, NoLog: true}, nil))(t)
	g := h.gate(t, judging{authorities: []*verify.Authority{keyAuthority(h.key)}, judge: eachSigned(1)})
	for _, c := range []struct {
		reason string
		image  gatetest.Image
		want   gate.Result
	}{
		{"listed", child, gate.Allow},
		{"not listed", stray, gate.Deny},
	} {
		name := index.Name + "@" + c.image.Manifest.Digest
		if outcome := g.Decide(t.Context(), pod(t, name)); outcome.Result != c.want {
			t.Errorf("%s: %+v", c.reason, outcome)
		}
	}
}

// TestJudgeData shows that a judge reads an image's own configuration, that it is read once, and
// that an unreadable one is an error.
func TestJudgeData(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	child := h.Build("app", "child", "child")
	index := h.BuildIndex("app", "1", child)
	configured := func(given []policy.Given) policy.Judgement {
		var out policy.Judgement
		for _, g := range given {
			d := policy.Decision{Result: policy.Pass, Reasons: []policy.Reason{{Code: policy.Verified, Message: "read"}}}
			switch {
			case g.DataErr != nil:
				d = policy.Decision{Result: policy.Indeterminate, Reasons: []policy.Reason{policy.LookReason(g.DataErr, "spec")}}
			case len(g.Data.Children) != 1 || !strings.Contains(string(g.Data.Children[0].Config), "{") || len(g.Data.Index) > 0 != g.Data.Descriptor.IsIndex():
				d = policy.Decision{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Denied, Message: fmt.Sprintf("%+v", g.Data)}}}
			}
			out.Decisions = append(out.Decisions, d)
		}
		return out
	}
	for _, want := range []policy.Data{policy.DataOne, policy.DataEach} {
		g := h.gate(t, judging{judge: configured, check: policy.Check{Lookup: policy.Lookup{WantsData: want}}})
		for _, name := range []string{child.ByDigest(), index.ByDigest()} {
			if outcome := g.Decide(t.Context(), pod(t, name)); outcome.Result != gate.Allow || outcome.Cost.Requests == 0 {
				t.Errorf("%s of %s: %+v", want, name, outcome)
			}
			if outcome := g.Decide(t.Context(), pod(t, name)); outcome.Result != gate.Allow || outcome.Cost.Requests != 0 {
				t.Errorf("%s of %s again: %d requests: %+v", want, name, outcome.Cost.Requests, outcome)
			}
		}
	}
	g := h.gate(t, judging{judge: configured, check: policy.Check{Lookup: policy.Lookup{WantsData: policy.DataOne}}})
	missing := child.Name + "@sha256:" + strings.Repeat("0", 64)
	if outcome := g.Decide(t.Context(), pod(t, missing)); outcome.Result != gate.Error || !hasCode(outcome, policy.ImageNotFound) {
		t.Errorf("of nothing: %+v", outcome)
	}
}

// TestJudgeOfUpdate shows that images which did not change are not given, that a
// rule about images alone is not asked then, and that one about objects is.
func TestJudgeOfUpdate(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	bad := h.Build("bad", "1", "bad")
	var given int
	judge := func(g []policy.Given) policy.Judgement {
		given = len(g)
		out := eachSigned(0)(g)
		out.Object = policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Denied, Message: "of the object"}}}
		return out
	}
	request := pod(t, bad.Name)
	request.Old = request.Object
	for _, c := range []struct {
		reason   string
		ofObject bool
		want     gate.Result
	}{
		{"images alone", false, gate.Allow},
		{"the object too", true, gate.Deny},
	} {
		given = -1
		outcome := h.gate(t, judging{judge: judge, ofObject: c.ofObject}).Decide(t.Context(), request)
		if outcome.Result != c.want || c.ofObject && given != 0 || !c.ofObject && given != -1 {
			t.Errorf("%s: given %d: %+v", c.reason, given, outcome)
		}
	}
}

// TestJudgeFailsOpen shows that a failure setting admits silence, and nothing else,
// for what a judge holds against an object too.
func TestJudgeFailsOpen(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "1", "app")
	for _, c := range []struct {
		reason string
		ruling policy.Ruling
		want   gate.Result
	}{
		{"silence", policy.Ruling{Result: policy.Indeterminate, Reasons: []policy.Reason{policy.LookReason(context.DeadlineExceeded, "spec")}}, gate.Allow},
		{"an expression that fails", policy.Ruling{Result: policy.Indeterminate, Reasons: []policy.Reason{{Code: policy.PolicyError, Message: "no such key"}}}, gate.Error},
		{"a no", policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Denied, Message: "no"}}}, gate.Deny},
		{"a defect that the object's author may have caused", policy.Ruling{Result: policy.Indeterminate, Reasons: []policy.Reason{{Code: policy.Internal, Message: "panic"}}}, gate.Error},
		{"no trust", policy.Ruling{Result: policy.Indeterminate, Reasons: []policy.Reason{policy.LookReason(errors.New("no root"), "spec")}}, gate.Error},
	} {
		rule := judging{judge: func(given []policy.Given) policy.Judgement {
			out := eachSigned(0)(given)
			out.Object = c.ruling
			return out
		}}
		g := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{rule}})
		if outcome := g.Decide(t.Context(), pod(t, image.Name)); outcome.Result != c.want {
			t.Errorf("%s: %+v", c.reason, outcome)
		}
	}
}

// TestAuditAnnotations shows that the words of policies for the audit log reach the
// outcome under the policy's name.
func TestAuditAnnotations(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "1", "app")
	rule := judging{judge: func(given []policy.Given) policy.Judgement {
		out := eachSigned(0)(given)
		out.AuditAnnotations = map[string]string{"who": "platform"}
		return out
	}}
	outcome := h.gate(t, rule).Decide(t.Context(), pod(t, image.Name))
	if got := outcome.AuditAnnotations["Test/test/who"]; got != "platform" || len(outcome.AuditAnnotations) != 1 {
		t.Errorf("annotations %v", outcome.AuditAnnotations)
	}
}
