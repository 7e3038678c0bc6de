package admission_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "messages", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// the parts of outcomes.
var (
	signedPolicy = &policy.Policy{Kind: "ClusterPolicy", Name: "signed"}
	lenient      = &policy.Policy{Kind: "ClusterPolicy", Name: "lenient", Settings: policy.Settings{FailOpen: true}}

	unsigned = policy.Reason{Code: policy.Unsigned, Path: "attestors[0]", Message: "no signature found", Hint: "sign the image"}
	wrongKey = policy.Reason{
		Code: "wrong-key", Path: "attestors[0]", Message: "signed with another key", Expected: "key SHA256:aa", Found: "key SHA256:bb",
		Hint: "sign with the key that the policy names",
	}
	unavailable = policy.Reason{Code: policy.Unavailable, Message: "ghcr.io: connection refused", Hint: "try again"}
)

func decision(p *policy.Policy, action policy.Action, result policy.Result, reasons ...policy.Reason) policy.Decision {
	return policy.Decision{Check: &policy.Check{Policy: p, Rule: "check", Entry: "verifyImages[0]", Action: action}, Result: result, Reasons: reasons}
}

func verdict(container string, answer gate.Result, decisions ...policy.Decision) gate.Verdict {
	v := gate.Verdict{
		Result: answer, Decisions: decisions,
		Image: policy.Image{Container: container, Role: "container", Ref: image.MustParse("ghcr.io/acme/" + container + ":1")},
	}
	for _, d := range decisions {
		switch {
		case d.Result == policy.Pass:
		case d.Check.Action.Admits(), d.Result == policy.Indeterminate && d.Check.Policy.FailOpen:
			v.Warnings = append(v.Warnings, d.Reasons...)
		default:
			v.Reasons = append(v.Reasons, d.Reasons...)
		}
	}
	return v
}

func TestMessages(t *testing.T) {
	pass := policy.Reason{Code: policy.Verified, Message: "signed by us"}
	good := verdict("good", gate.Allow, decision(signedPolicy, policy.Enforce, policy.Pass, pass))
	hostile := unsigned
	hostile.Found = "a\x1b[31mred\u202egreen\nPod shop/web: allowed"
	for name, outcome := range map[string]gate.Outcome{
		"unsigned":     {Result: gate.Deny, Verdicts: []gate.Verdict{good, verdict("web", gate.Deny, decision(signedPolicy, policy.Enforce, policy.Fail, unsigned))}},
		"wrong-signer": {Result: gate.Deny, Verdicts: []gate.Verdict{verdict("web", gate.Deny, decision(signedPolicy, policy.Enforce, policy.Fail, wrongKey))}},
		"not-verified": {Result: gate.Error, Verdicts: []gate.Verdict{verdict("web", gate.Error, decision(signedPolicy, policy.Enforce, policy.Indeterminate, unavailable))}},
		"all-at-once": {Result: gate.Deny, Verdicts: []gate.Verdict{
			verdict("a", gate.Deny, decision(lenient, policy.Warn, policy.Fail, wrongKey), decision(signedPolicy, policy.Enforce, policy.Fail, unsigned)),
			good,
			verdict("c", gate.Error, decision(signedPolicy, policy.Enforce, policy.Indeterminate, unavailable)),
		}},
		"whole-object": {Result: gate.Error, Reasons: []policy.Reason{{Code: policy.PolicyError, Path: "ClusterPolicy/signed/check", Message: "the labels of the namespace are not known"}}},
		"malformed":    {Result: gate.Deny, Reasons: []policy.Reason{{Code: policy.Malformed, Path: "/spec/containers/0/image", Message: `reference "::": want [registry/]repository`, Hint: "write it otherwise"}}},
		"hostile":      {Result: gate.Deny, Verdicts: []gate.Verdict{verdict("web", gate.Deny, decision(signedPolicy, policy.Enforce, policy.Fail, hostile))}},
		"no-answer":    {},
	} {
		t.Run(name, func(t *testing.T) {
			decider := &pinner{answer: func(context.Context, gate.Request) gate.Outcome { return outcome }}
			a := send(t, endpoint(t, admission.Validate, decider), review(t, "CREATE", pod("nginx"), nil, nil))
			if a.Response.Allowed || a.Response.Status.Code != 403 || a.Response.Status.Reason != "Forbidden" {
				t.Errorf("%+v", a.Response)
			}
			notes := a.Response.AuditAnnotations
			golden(t, name, fmt.Sprintf("%s\n---\nresult: %s\ncodes: %s", a.Response.Status.Message, notes["result"], notes["codes"]))
		})
	}
}

func TestTheCommandThatReproduces(t *testing.T) {
	outcome := gate.Outcome{Result: gate.Deny, Verdicts: []gate.Verdict{
		verdict("web", gate.Deny, decision(signedPolicy, policy.Enforce, policy.Fail, unsigned)),
		verdict("side", gate.Deny, decision(signedPolicy, policy.Enforce, policy.Fail, unsigned)),
	}}
	decider := &pinner{answer: func(context.Context, gate.Request) gate.Outcome { return outcome }}
	reproduce := withReproduce(func(_ string, i policy.Image) string {
		if i.Container == "side" {
			return ""
		}
		return "quaymaster explain " + i.Ref.Written()
	})
	a := send(t, endpoint(t, admission.Validate, decider, reproduce), review(t, "CREATE", pod("nginx"), nil, nil))
	golden(t, "reproduce", a.Response.Status.Message)
}

// TestWarningKeepsItsEnd: a long warning is cut before the code, and a short one is
// not cut.
func TestWarningKeepsItsEnd(t *testing.T) {
	const bound = 256
	mirrored := policy.Reason{Code: policy.NotMirrored}
	differs := policy.Reason{
		Code: policy.MirrorDiffers, Expected: "sha256:" + strings.Repeat("a", 64), Found: "sha256:" + strings.Repeat("b", 64),
	}
	for _, row := range []struct {
		reason  string
		subject policy.Reason
		message string
		end     string
		whole   bool
	}{
		{"short", mirrored, "it stays", ": it stays [not-mirrored]", true},
		{"long", mirrored, strings.Repeat("x", bound), "xx... [not-mirrored]", false},
		{"long, of two bytes a character", mirrored, strings.Repeat("ö", bound), "ö... [not-mirrored]", false},
		{"both digests, short", differs, "it differs", ": it differs (used sha256:aaaaaaaaaaaa, there sha256:bbbbbbbbbbbb) [mirror-differs]", true},
		{"both digests, long", differs, strings.Repeat("x", bound), "xx... (used sha256:aaaaaaaaaaaa, there sha256:bbbbbbbbbbbb) [mirror-differs]", false},
	} {
		row.subject.Message = row.message
		v := verdict("web", gate.Allow)
		v.Warnings = []policy.Reason{row.subject}
		decider := &pinner{answer: func(context.Context, gate.Request) gate.Outcome {
			return gate.Outcome{Result: gate.Allow, Verdicts: []gate.Verdict{v}}
		}}
		got := send(t, endpoint(t, admission.Validate, decider), review(t, "CREATE", pod("nginx"), nil, nil)).Response.Warnings
		if len(got) != 1 || !strings.HasSuffix(got[0], row.end) || len(got[0]) > bound || !row.whole && len(got[0]) < bound-1 {
			t.Errorf("%s: %q, want one that ends in %q", row.reason, got, row.end)
		}
	}
}

func TestWarnings(t *testing.T) {
	many := []gate.Verdict{}
	for i := range 30 {
		many = append(many, verdict(fmt.Sprintf("c%d", i), gate.Allow, decision(signedPolicy, policy.Warn, policy.Fail, unsigned)))
	}
	long := unsigned
	long.Message = strings.Repeat("ö\x00", 1000)
	loose := verdict("web", gate.Allow)
	loose.Warnings = []policy.Reason{{Code: policy.NotPinned, Message: "the runtime may see another digest"}}
	unasked := func(p *policy.Policy) gate.Outcome {
		return gate.Outcome{
			Result: gate.Allow, Rules: []policy.RuleResult{{Policy: p, Rule: "check", Err: errors.New("no such variable")}},
			Warnings: []policy.Reason{{Code: policy.PolicyError, Path: p.ID() + "/check", Message: "no such variable"}},
		}
	}
	for name, row := range map[string]struct {
		reason  string
		outcome gate.Outcome
		want    []string // parts of each warning
	}{
		"warn":              {"the client is warned", gate.Outcome{Result: gate.Allow, Verdicts: []gate.Verdict{verdict("web", gate.Allow, decision(signedPolicy, policy.Warn, policy.Fail, unsigned))}}, []string{"web: ghcr.io/acme/web:1: ClusterPolicy, policy signed.check: no signature found [unsigned]"}},
		"audit":             {"it is for the policy's owner", gate.Outcome{Result: gate.Allow, Verdicts: []gate.Verdict{verdict("web", gate.Allow, decision(signedPolicy, policy.Audit, policy.Fail, unsigned))}}, nil},
		"audit and warn":    {"of two policies, one warns", gate.Outcome{Result: gate.Allow, Verdicts: []gate.Verdict{verdict("web", gate.Allow, decision(lenient, policy.Audit, policy.Fail, unsigned), decision(signedPolicy, policy.Warn, policy.Fail, unsigned))}}, []string{"ClusterPolicy, policy signed.check: no signature found"}},
		"pass":              {"no warning", gate.Outcome{Result: gate.Allow, Verdicts: []gate.Verdict{verdict("web", gate.Allow, decision(signedPolicy, policy.Warn, policy.Pass, unsigned))}}, nil},
		"fail open":         {"an image that could not be verified", gate.Outcome{Result: gate.Allow, Verdicts: []gate.Verdict{verdict("web", gate.Allow, decision(lenient, policy.Enforce, policy.Indeterminate, unavailable))}}, []string{"could not be verified: ghcr.io: connection refused"}},
		"the gate's own":    {"of no decision", gate.Outcome{Result: gate.Allow, Verdicts: []gate.Verdict{loose}}, []string{"the runtime may see another digest [not-pinned]"}},
		"rule, fail open":   {"a rule that could not be evaluated", unasked(lenient), []string{"no such variable"}},
		"rule, audit only":  {"it is for the policy's owner", unasked(&policy.Policy{Kind: "ClusterPolicy", Name: "x", Settings: policy.Settings{FailOpen: true, AuditOnly: true}}), nil},
		"many":              {"an API server passes on some", gate.Outcome{Result: gate.Allow, Verdicts: many}, []string{"c0:", "c1:", "c2:", "c3:", "c4:", "c5:", "c6:", "c7:", "c8:", "and 21 more"}},
		"long, and hostile": {"an HTTP header", gate.Outcome{Result: gate.Allow, Verdicts: []gate.Verdict{verdict("web", gate.Allow, decision(signedPolicy, policy.Warn, policy.Fail, long))}}, []string{"ö?ö?"}},
	} {
		t.Run(name, func(t *testing.T) {
			decider := &pinner{answer: func(context.Context, gate.Request) gate.Outcome { return row.outcome }}
			a := send(t, endpoint(t, admission.Validate, decider), review(t, "CREATE", pod("nginx"), nil, nil))
			got := a.Response.Warnings
			if !a.Response.Allowed || len(got) != len(row.want) {
				t.Fatalf("%s: %+v, want %q", row.reason, a.Response, row.want)
			}
			for i, want := range row.want {
				if !strings.Contains(got[i], want) || len(got[i]) > 256 || strings.ContainsAny(got[i], "\x00\n") {
					t.Errorf("%s: %d bytes: %q, want %q in it", row.reason, len(got[i]), got[i], want)
				}
			}
		})
	}
}
