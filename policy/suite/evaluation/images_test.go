package evaluation

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// TestEachImageIsNamed: a rule about several images names each that it does not pass, with
// its container, its path and the codes, behind its message about the object.
func TestEachImageIsNamed(t *testing.T) {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "signed"}
	verdict := func(container, ref string, result policy.Result, reasons ...policy.Reason) gate.Verdict {
		v := gate.Verdict{Image: policy.Image{Container: container, Role: "container", Pointer: "/spec/" + container, Ref: image.MustParse(ref)}}
		v.Decisions = []policy.Decision{{Check: &policy.Check{Policy: p, Rule: "team"}, Result: result, Reasons: reasons}}
		return v
	}
	outcome := gate.Outcome{Verdicts: []gate.Verdict{
		verdict("a", "registry.test/a:1", policy.Pass, policy.Reason{Code: policy.Verified, Message: "signed by a key"}),
		verdict("b", "registry.test/b:1", policy.Indeterminate, policy.Reason{Code: policy.ImageNotFound, Message: "not found"}),
		verdict("c", "registry.test/c:1", policy.Fail, policy.Reason{Code: policy.Unsigned, Message: "no signature found", Found: "an attestation"}, policy.Reason{Code: policy.MissingDigest, Message: "missing digest"}),
		verdict("d", "registry.test/d:1", policy.Fail, policy.Reason{Code: "wrong-key", Message: "signed with another key", Expected: "key 1", Found: "key 2"}),
	}}
	var a Answer
	a.ofImages(&outcome)
	if len(a.Rules) != 1 || a.Rules[0].Result != Fail || len(a.Rules[0].Images) != 4 {
		t.Fatalf("%+v", a.Rules)
	}
	want := "container b (/spec/b), registry.test/b:1: not found [image-not-found]\n" +
		"container c (/spec/c), registry.test/c:1: no signature found (found an attestation) [unsigned]; missing digest [missing-digest]\n" +
		"container d (/spec/d), registry.test/d:1: signed with another key (expected key 1, found key 2) [wrong-key]"
	if got := a.Rules[0].Message; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	a = Answer{Rules: []RuleResult{{Policy: p, Rule: "team", Result: Fail, Message: "label it"}}}
	a.ofImages(&outcome)
	if got := a.Rules[0].Message; len(a.Rules) != 1 || !strings.HasPrefix(got, "label it\ncontainer b") {
		t.Errorf("%d rules, %q", len(a.Rules), got)
	}
	outcome.Verdicts = outcome.Verdicts[:1]
	a = Answer{}
	a.ofImages(&outcome)
	if a.Rules[0].Message != "signed by a key" {
		t.Errorf("%q", a.Rules[0].Message)
	}
}
