package gate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/workload"
)

// codes are those of the verdict's reasons.
func codes(reasons []policy.Reason) []policy.Code {
	var out []policy.Code
	for _, r := range reasons {
		out = append(out, r.Code)
	}
	return out
}

func digestRule(r rule, mutate, verify bool) rule {
	r.check.MutateDigest, r.check.VerifyDigest = mutate, verify
	return r
}

func TestPinning(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, bad := h.Build("app", "v1", "app"), h.Build("bad", "v1", "bad")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	pinned := app.Name + "@" + app.Manifest.Digest
	ok, loose := []policy.Code{policy.Verified}, []policy.Code{policy.Verified, policy.NotPinned}
	missing, both := []policy.Code{policy.MissingDigest}, []policy.Code{policy.Unsigned, policy.MissingDigest}
	for _, c := range []struct {
		reason         string
		pinning        gate.Pinning
		mutate, verify bool
		image          string
		want           gate.Result
		codes          []policy.Code
		patched        string // empty: no patch
	}{
		{"here, the policy pins", gate.PinHere, true, true, app.Name, gate.Allow, ok, pinned},
		{"here, it pins without verifying", gate.PinHere, true, false, app.Name, gate.Allow, ok, pinned},
		{"here, it is pinned already", gate.PinHere, true, true, pinned, gate.Allow, ok, ""},
		{"here, the policy does not pin", gate.PinHere, false, false, app.Name, gate.Allow, loose, ""},
		{"here, it wants a digest and does not pin", gate.PinHere, false, true, app.Name, gate.Deny, missing, ""},
		{"here, it wants a digest, does not pin, and it is unsigned", gate.PinHere, false, true, bad.Name, gate.Deny, both, ""},
		{"here, it wants a digest, and the image is not there", gate.PinHere, false, true, h.Registry.Host() + "/none:v1", gate.Deny, []policy.Code{policy.MissingDigest, policy.ImageNotFound}, ""},
		{"here, it is denied", gate.PinHere, true, true, bad.Name, gate.Deny, []policy.Code{policy.Unsigned}, ""},
		{"later, the pods are pinned", gate.PinLater, true, true, app.Name, gate.Allow, ok, ""},
		{"later, the pods are not pinned", gate.PinLater, false, false, app.Name, gate.Allow, loose, ""},
		{"later, it wants a digest and does not pin", gate.PinLater, false, true, app.Name, gate.Deny, missing, ""},
		{"done, as it should be", gate.PinDone, true, true, pinned, gate.Allow, ok, ""},
		{"done, and a tag slipped past", gate.PinDone, true, true, app.Name, gate.Deny, missing, ""},
		{"done, and an unsigned tag slipped past", gate.PinDone, true, true, bad.Name, gate.Deny, both, ""},
		{"done, and digests are not verified", gate.PinDone, true, false, app.Name, gate.Allow, loose, ""},
		{"done, an unsigned tag where digests are not verified", gate.PinDone, true, false, bad.Name, gate.Deny, []policy.Code{policy.Unsigned}, ""},
		{"done, the policy never pinned", gate.PinDone, false, false, app.Name, gate.Allow, loose, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			request := pod(t, c.image)
			request.Pinning = c.pinning
			outcome := h.gate(t, digestRule(signedBy(h.key), c.mutate, c.verify)).Decide(t.Context(), request)
			if outcome.Result != c.want || !slices.Equal(codes(outcome.Verdicts[0].Reasons), c.codes) {
				t.Fatalf("%s %+v, want %s %v", outcome.Result, outcome.Verdicts[0].Reasons, c.want, c.codes)
			}
			if (len(outcome.Patch) > 0) != (c.patched != "") {
				t.Fatalf("patch %v", outcome.Patch)
			}
			if c.patched == "" {
				return
			}
			after := must(workload.Extract(must(workload.Apply(request.Object, outcome.Patch))(t)))(t)
			if after[0].Image != c.patched {
				t.Errorf("pinned as %s, want %s", after[0].Image, c.patched)
			}
			again := gate.Request{Object: must(workload.Apply(request.Object, outcome.Patch))(t)}
			if o := h.gate(t, digestRule(signedBy(h.key), c.mutate, c.verify)).Decide(t.Context(), again); len(o.Patch) > 0 || o.Result != gate.Allow {
				t.Errorf("admitting twice: %s %v", o.Result, o.Patch)
			}
		})
	}
}

// TestASlippedTagIsVerified: the report has the image's failures besides the missing digest, and a
// policy that fails open admits an image that could not be verified, and so not be pinned.
func TestASlippedTagIsVerified(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, bad := h.Build("app", "v1", "app"), h.Build("bad", "v1", "bad")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	for _, c := range []struct {
		reason   string
		failOpen bool
		action   policy.Action
		image    string
		down     bool
		want     gate.Result
		code     policy.Code
	}{
		{"enforced, fail closed", false, policy.Enforce, app.Name, false, gate.Deny, policy.MissingDigest},
		{"under audit the report has it as unsigned", false, policy.Audit, bad.Name, false, gate.Allow, policy.Unsigned},
		{"under audit a signed one is reported as not pinned", false, policy.Audit, app.Name, false, gate.Allow, policy.MissingDigest},
		{"fail open, and the registry is down", true, policy.Enforce, app.Name, true, gate.Allow, policy.Unavailable},
		{"fail closed, and the registry is down", false, policy.Enforce, app.Name, true, gate.Deny, policy.MissingDigest},
		{"fail open, and it can be looked at", true, policy.Enforce, app.Name, false, gate.Deny, policy.MissingDigest},
		{"fail open, unsigned", true, policy.Enforce, bad.Name, false, gate.Deny, policy.Unsigned},
	} {
		t.Run(c.reason, func(t *testing.T) {
			h.Registry.SetFaults()
			if c.down {
				h.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Manifest, Do: registrytest.RetryAfter(503, "600")})
			}
			r := digestRule(signedBy(h.key), true, true)
			r.check.Action = c.action
			g := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{FailOpen: c.failOpen}, Rules: []policy.Rule{r}})
			request := pod(t, c.image)
			request.Pinning = gate.PinDone
			outcome := g.Decide(t.Context(), request)
			all := append(codes(outcome.Verdicts[0].Reasons), codes(outcome.Verdicts[0].Warnings)...)
			if outcome.Result != c.want || !slices.Contains(all, c.code) {
				t.Errorf("%s %v, want %s and %s", outcome.Result, all, c.want, c.code)
			}
		})
	}
}

func TestOneDenialLeavesTheObjectUnchanged(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, bad := h.Build("app", "v1", "app"), h.Build("bad", "v1", "bad")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	g := h.gate(t, signedBy(h.key))
	if outcome := g.Decide(t.Context(), pod(t, app.Name, bad.Name)); outcome.Result != gate.Deny || len(outcome.Patch) != 0 {
		t.Errorf("%s with the patch %v", outcome.Result, outcome.Patch)
	}
	if outcome := g.Decide(t.Context(), pod(t, app.Name, app.Name)); outcome.Result != gate.Allow || len(outcome.Patch) != 4 {
		t.Errorf("%s with the patch %v", outcome.Result, outcome.Patch)
	}
}

// transforming is a rule with a reference that is made from another text.
type transforming struct{ extracting }

func (transforming) Extractors(*policy.Subject) []policy.Extractor {
	return []policy.Extractor{{Name: "param", Path: "/metadata/annotations/image", Transform: func(text string) (string, error) {
		return strings.TrimPrefix(text, "image="), nil
	}}}
}

func TestATransformedImageIsProvedAndNotPinned(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	bad := h.Build("bad", "v1", "bad")
	plain := extracting{digestRule(signedBy(h.key), true, false), "default"}
	strict := transforming{extracting{digestRule(signedBy(h.key), true, true), "default"}}
	for _, pinning := range []gate.Pinning{gate.PinHere, gate.PinDone} {
		outcome := h.gate(t, transforming{plain}).Decide(t.Context(), gate.Request{Object: checkEvaluation(t, "image="+app.Name, ""), Pinning: pinning})
		expect(t, outcome, gate.Allow, policy.Verified)
		if v := outcome.Verdicts[0]; len(outcome.Patch) != 0 || !slices.Contains(codes(v.Reasons), policy.NotPinned) {
			t.Errorf("%s: patch %v, reasons %+v", pinning, outcome.Patch, v.Reasons)
		}
		if v := outcome.Verdicts[0]; pinning == gate.PinHere && !slices.Contains(codes(v.Warnings), policy.NotPinned) {
			t.Errorf("there is no warning: %+v", v.Warnings)
		}
		outcome = h.gate(t, strict).Decide(t.Context(), gate.Request{Object: checkEvaluation(t, "image="+app.Name, ""), Pinning: pinning})
		expect(t, outcome, gate.Deny, policy.MissingDigest)
		outcome = h.gate(t, strict).Decide(t.Context(), gate.Request{Object: checkEvaluation(t, "image="+app.ByDigest(), ""), Pinning: pinning})
		expect(t, outcome, gate.Allow, policy.Verified)
		outcome = h.gate(t, transforming{plain}).Decide(t.Context(), gate.Request{Object: checkEvaluation(t, "image="+bad.Name, ""), Pinning: pinning})
		expect(t, outcome, gate.Deny, policy.Unsigned)
	}
	outcome := h.gate(t, plain).Decide(t.Context(), gate.Request{Object: checkEvaluation(t, app.Name, "")})
	expect(t, outcome, gate.Allow, policy.Verified)
	if len(outcome.Patch) != 2 {
		t.Errorf("an extracted image that is written plainly is not pinned: %v", outcome.Patch)
	}
}

// twoFaced is a registry that returns another digest for each credential.
type twoFaced struct {
	*env
	other image.Digest
}

func (f twoFaced) Open(ctx context.Context, access gate.Access, repository image.Repository) (gate.Session, error) {
	s, err := f.env.Open(ctx, access, repository)
	if len(access.Secrets) == 0 {
		return s, err
	}
	return secretive{s.(session), f.other}, err
}

type secretive struct {
	session
	digest image.Digest
}

func (secretive) Scope() string { return "secret" }

func (s secretive) Resolve(_ context.Context, ref image.Ref) (image.Pinned, error) {
	return ref.Pin(image.Descriptor{Digest: s.digest})
}

func TestADigestThatDependsOnCredentialsIsNotAllowed(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, other := h.Build("app", "v1", "app"), h.Build("app", "v2", "other")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	must(0, h.SignBundle(other, byKey(h.key), nil))(t)
	plain, secret := signedBy(h.key), signedBy(h.key)
	secret.check.Credentials.Secrets = []string{"default/pull"}
	p := &policy.Policy{Kind: "Test", Name: "test", Rules: []policy.Rule{plain, named{secret}}}
	for _, c := range []struct {
		reason, digest string
		want           gate.Result
	}{
		{"both see one digest", app.Manifest.Digest, gate.Allow},
		{"each sees its own, both signed", other.Manifest.Digest, gate.Error},
	} {
		g := h.gateAt(t, twoFaced{h, image.MustParseDigest(c.digest)}, p)
		outcome := decide(t, g, app.Name)
		if outcome.Result != c.want || (len(outcome.Patch) > 0) != (c.want == gate.Allow) {
			t.Errorf("%s: %s %+v, patch %v", c.reason, outcome.Result, outcome.Verdicts, outcome.Patch)
		}
		if got := outcome.Verdicts[0].Cost.Requests; got < 2 || got != outcome.Cost.Requests {
			t.Errorf("%s: the image cost %d requests, the object %d: want those with either credential", c.reason, got, outcome.Cost.Requests)
		}
	}
}

// named gives a second rule of a policy a name of its own.
type named struct{ rule }

func (named) Name() string { return "second" }
