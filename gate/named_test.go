package gate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/workload"
)

// naming is a rule that names the object's kind itself.
type naming struct{ rule }

func (naming) Name() string    { return "named" }
func (naming) PinsNamed() bool { return true }

func controller(t testing.TB, kind, image string) workload.Object {
	t.Helper()
	return must(workload.Parse(fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":%q,"metadata":{"name":"x","namespace":"default"},"spec":{"template":{"spec":{"initContainers":[{"name":"i","image":%q}],"containers":[{"name":"c","image":%q}]}}}}`, kind, image, image)))(t)
}

// TestNamed: what a rule that names the object's kind itself pins is pinned in the object,
// or its tag is denied; what follows from a rule about pods is left to the pods.
func TestNamed(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, bad := h.Build("app", "v1", "app"), h.Build("bad", "v1", "bad")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	pinned := app.Name + "@" + app.Manifest.Digest
	follows := digestRule(signedBy(h.key), true, true)
	named, tags := naming{follows}, naming{digestRule(signedBy(h.key), true, false)}
	for _, c := range []struct {
		reason  string
		rules   []policy.Rule
		pinning gate.Pinning
		image   string
		want    gate.Result
		codes   []policy.Code
		pins    bool
	}{
		{"it is named", []policy.Rule{named}, gate.PinNamed, app.Name, gate.Allow, []policy.Code{policy.Verified}, true},
		{"it is named, by digest", []policy.Rule{named}, gate.PinNamed, pinned, gate.Allow, []policy.Code{policy.Verified}, false},
		{"it is named, and not signed", []policy.Rule{named}, gate.PinNamed, bad.Name, gate.Deny, []policy.Code{policy.Unsigned}, false},
		{"it is named, and slipped past", []policy.Rule{named}, gate.PinLater, app.Name, gate.Deny, []policy.Code{policy.MissingDigest}, false},
		{"it is named, and was pinned", []policy.Rule{named}, gate.PinLater, pinned, gate.Allow, []policy.Code{policy.Verified}, false},
		{"it is named, and may not be changed", []policy.Rule{named}, gate.PinKept, app.Name, gate.Deny, []policy.Code{policy.MissingDigest}, false},
		{"it is named, may not be changed, and is not signed", []policy.Rule{named}, gate.PinKept, bad.Name, gate.Deny, []policy.Code{policy.Unsigned, policy.MissingDigest}, false},
		{"it is named, may not be changed, and a tag will do", []policy.Rule{tags}, gate.PinKept, app.Name, gate.Allow, []policy.Code{policy.Verified, policy.NotPinned}, false},
		{"it follows", []policy.Rule{follows}, gate.PinNamed, app.Name, gate.Allow, []policy.Code{policy.Verified}, false},
		{"it follows, and pods are pinned", []policy.Rule{follows}, gate.PinLater, app.Name, gate.Allow, []policy.Code{policy.Verified}, false},
		{"it follows, and may not be changed", []policy.Rule{follows}, gate.PinKept, app.Name, gate.Allow, []policy.Code{policy.Verified}, false},
		{"it follows and is named", []policy.Rule{follows, named}, gate.PinNamed, app.Name, gate.Allow, []policy.Code{policy.Verified, policy.Verified}, true},
		{"it follows and is named, and slipped past", []policy.Rule{follows, named}, gate.PinLater, app.Name, gate.Deny, []policy.Code{policy.MissingDigest}, false},
	} {
		for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
			object := controller(t, kind, c.image)
			out := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Rules: c.rules}).Decide(t.Context(), gate.Request{Object: object, Pinning: c.pinning})
			if out.Result != c.want || len(out.Verdicts) != 2 || !slices.Equal(codes(out.Verdicts[1].Reasons), c.codes) {
				t.Fatalf("%s, %s: %s %+v, want %s %v", c.reason, kind, out.Result, out.Verdicts, c.want, c.codes)
			}
			if (len(out.Patch) > 0) != c.pins {
				t.Fatalf("%s, %s: patch %v", c.reason, kind, out.Patch)
			}
			for _, use := range must(workload.Extract(must(workload.Apply(object, out.Patch))(t)))(t) {
				if c.pins && use.Image != pinned {
					t.Errorf("%s, %s: %s is %s", c.reason, kind, use.Container, use.Image)
				}
			}
		}
	}
	pod := pod(t, app.Name)
	pod.Pinning = gate.PinLater // as a mirror pod is reported
	if out := h.gate(t, named).Decide(t.Context(), pod); out.Result != gate.Allow {
		t.Errorf("a pod is pinned as pods are: %s %+v", out.Result, out.Verdicts)
	}
}

// TestAllReasons: no reason of an image hides another one, of whatever policy, and the
// gravest is the first.
func TestAllReasons(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, bad := h.Build("app", "v1", "app"), h.Build("bad", "v1", "bad")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	digests := rule{policy.Check{Entry: "digests", Pinning: policy.Pinning{VerifyDigest: true}}}
	requires := judging{judge: eachSigned(0), check: policy.Check{Claims: policy.Claims{Required: true}}}
	with := func(name string, action policy.Action, r policy.Rule) *policy.Policy {
		if own, ok := r.(rule); ok {
			own.check.Action = action
			r = own
		}
		return &policy.Policy{Kind: "Test", Name: name, Rules: []policy.Rule{r}}
	}
	signed := digestRule(signedBy(h.key), false, false)
	for _, c := range []struct {
		reason   string
		policies []*policy.Policy
		image    string
		want     []policy.Code
		warned   []policy.Code
	}{
		{"two policies, the lesser first", []*policy.Policy{with("a", policy.Enforce, digests), with("b", policy.Enforce, signed)}, bad.Name, []policy.Code{policy.Unsigned, policy.MissingDigest}, nil},
		{"two policies, and one passes", []*policy.Policy{with("a", policy.Enforce, digests), with("b", policy.Enforce, signed)}, app.Name, []policy.Code{policy.MissingDigest}, nil},
		{"under audit", []*policy.Policy{with("a", policy.Audit, digestRule(signed, false, true))}, bad.Name, []policy.Code{}, []policy.Code{policy.Unsigned, policy.MissingDigest}},
		{"a verification that a policy requires", []*policy.Policy{with("a", policy.Enforce, digests), with("b", policy.Enforce, requires)}, app.Name, []policy.Code{policy.Unverified, policy.MissingDigest}, nil},
		{"which one has that denies the tag", []*policy.Policy{with("a", policy.Enforce, digestRule(signed, false, true)), with("b", policy.Enforce, requires)}, app.Name, []policy.Code{policy.MissingDigest}, nil},
	} {
		set := must(set.New(c.policies...))(t)
		out := h.gateOf(t, h, set).Decide(t.Context(), pod(t, c.image))
		v := out.Verdicts[0]
		if got := codes(v.Reasons); len(c.want) > 0 && (out.Result != gate.Deny || !slices.Equal(got, c.want)) {
			t.Errorf("%s: %s %v, want %v", c.reason, out.Result, got, c.want)
		}
		if got := codes(v.Warnings); !slices.Equal(got, c.warned) {
			t.Errorf("%s: warned %v, want %v", c.reason, got, c.warned)
		}
	}
}
