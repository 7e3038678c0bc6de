package gate_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// TestUnpinnedTagIsNotStale: a verification is of a digest. An attacker that moved the tag to
// another, and keeps the registry from answering us (its limit on requests is enough), would else
// have that one run.
func TestUnpinnedTagIsNotStale(t *testing.T) {
	for reason, test := range map[string]struct {
		pins, byDigest, bare bool
		pinning              gate.Pinning
		runs                 bool
	}{
		"the policy pins":                           {pins: true, runs: true},
		"the policy pins, in a template":            {pins: true, pinning: gate.PinLater, runs: true},
		"the policy pins not, and it is":            {runs: true},
		"the same, by digest":                       {byDigest: true, runs: true},
		"the same, in a template":                   {pinning: gate.PinLater, runs: true},
		"of which only the image is known":          {pinning: gate.PinLater, bare: true},
		"it was to be pinned":                       {pins: true, pinning: gate.PinDone},
		"the same, by digest ":                      {pins: true, byDigest: true, pinning: gate.PinDone, runs: true},
		"it cannot be pinned":                       {pins: true, pinning: gate.PinNever},
		"it cannot be pinned, and it is by digest ": {pins: true, byDigest: true, pinning: gate.PinNever, runs: true},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			h, c := newEnv(t, registrytest.Options{}), &clock{}
			app := h.Build("app", "v1", "app")
			must(0, h.SignBundle(app, byKey(h.key), nil))(t)
			r := signedBy(h.key)
			r.check.MutateDigest = test.pins
			g := h.keeping(t, c, nil, r)
			name := app.Name
			if test.byDigest {
				name = app.ByDigest()
			}
			request := pod(t, name)
			request.Pinning, request.Subject.Bare = test.pinning, test.bare
			if out := g.Decide(t.Context(), request); out.Result != gate.Allow {
				t.Fatalf("while it answers: %+v", out.Verdicts)
			}
			h.Build("app", "v1", "moved, and unsigned")
			h.Registry.SetFaults(registrytest.Fault{Do: registrytest.RetryAfter(429, "60")})
			c.advance(2 * time.Hour)
			out := g.Decide(t.Context(), request)
			if (out.Result == gate.Allow) != test.runs || out.Result == gate.Deny {
				t.Errorf("%s, want it to run: %t: %+v", out.Result, test.runs, out.Verdicts)
			}
			if pins := test.pinning == gate.PinHere && !test.byDigest; pins != (len(out.Patch) > 0) {
				t.Errorf("patched by %v", out.Patch)
			}
		})
	}
}

// TestADenyIsNotEvadedBySilence has a tag that was moved to a digest which an override
// denies, where no policy matches the image.
func TestADenyIsNotEvadedBySilence(t *testing.T) {
	h, c := newEnv(t, registrytest.Options{}), &clock{}
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	elsewhere := elsewhereRule{signedBy(h.key), "default"}
	bad := h.Build("app", "v2", "bad")
	p := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{elsewhere}}
	g := h.overriddenFor(t, []*policy.Policy{p}, []string{an("a", "Deny", digests(bad))}, gate.WithClock(c.now), gate.WithStale(time.Hour), gate.WithTimeout(time.Second))
	if out := g.Decide(t.Context(), pod(t, app.Name)); out.Result != gate.Allow {
		t.Fatalf("while it answers: %+v", out.Verdicts)
	}
	h.Build("app", "v1", "bad")
	h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})
	c.advance(20 * time.Minute) // what an index lists is remembered
	for _, pinning := range []gate.Pinning{gate.PinHere, gate.PinDone, gate.PinNever} {
		request := pod(t, app.Name)
		request.Object = changed(t, request.Object, func(o map[string]any) { o["metadata"].(map[string]any)["namespace"] = "other" })
		request.Pinning = pinning
		if out := g.Decide(t.Context(), request); out.Result != gate.Error {
			t.Errorf("%q: %s: %+v", pinning, out.Result, out.Verdicts)
		}
	}
}

// elsewhereRule matches one namespace.
type elsewhereRule struct {
	rule
	namespace string
}

func (r elsewhereRule) Plan(ctx context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	if s.Namespace != r.namespace {
		return policy.RulePlan{}, nil
	}
	return r.rule.Plan(ctx, s, images)
}

// TestATagThatWasSeenToBeGoneDoesNotComeBack from an earlier snapshot.
func TestATagThatWasSeenToBeGoneDoesNotComeBack(t *testing.T) {
	h, c := newEnv(t, registrytest.Options{}), &clock{}
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	g := h.keeping(t, c, nil, signedBy(h.key))
	if out := decide(t, g, app.Name); out.Result != gate.Allow {
		t.Fatalf("while it answers: %+v", out.Verdicts)
	}
	kept := must(g.Snapshot(room, 1))(t)
	h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(404)})
	c.advance(2 * time.Hour)
	if out := decide(t, g, app.Name); out.Result != gate.Error {
		t.Fatalf("when it is gone: %+v", out.Verdicts)
	}
	h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})
	for _, part := range slices.Concat(kept, must(g.Snapshot(room, 1))(t)) {
		must(g.RestoreTrusted(part))(t)
	}
	if out := decide(t, g, app.Name); out.Result != gate.Error {
		t.Errorf("%s: %+v", out.Result, out.Verdicts)
	}
	h.Registry.SetFaults()
	if out := decide(t, g, app.Name); out.Result != gate.Allow {
		t.Fatalf("when it is back: %+v", out.Verdicts)
	}
	h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})
	c.advance(2 * time.Hour)
	if out := decide(t, g, app.Name); out.Result != gate.Allow || !isStale(out) {
		t.Errorf("after it was back: %s: %+v", out.Result, out.Verdicts)
	}
}

// TestSignedAfterItWasLookedAt: an earlier result without a signature does not affect the one that
// was verified later.
func TestSignedAfterItWasLookedAt(t *testing.T) {
	h, c := newEnv(t, registrytest.Options{}), &clock{}
	app := h.Build("app", "v1", "app")
	g := h.keeping(t, c, nil, signedBy(h.key))
	if out := decide(t, g, app.Name); out.Result != gate.Deny {
		t.Fatalf("unsigned: %+v", out.Verdicts)
	}
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	c.advance(time.Minute)
	if out := decide(t, g, app.Name); out.Result != gate.Allow {
		t.Fatalf("signed: %+v", out.Verdicts)
	}
	h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})
	c.advance(2 * time.Hour)
	if out := decide(t, g, app.Name); out.Result != gate.Allow || !isStale(out) {
		t.Errorf("%s: %+v", out.Result, out.Verdicts)
	}
}

// TestAnOlderWordOfAPeerDoesNotReplaceAMoreRecentOne.
func TestAnOlderWordOfAPeerDoesNotReplaceAMoreRecentOne(t *testing.T) {
	for reason, test := range map[string]struct {
		window time.Duration
		runs   bool
	}{"proved here in time": {3 * time.Hour, true}, "not verified in time": {time.Hour, false}} {
		h, c := newEnv(t, registrytest.Options{}), &clock{}
		app := h.Build("app", "v1", "app")
		must(0, h.SignBundle(app, byKey(h.key), nil))(t)
		one := h.keeping(t, c, nil, signedBy(h.key))
		p := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Settings: policy.Settings{StaleIfError: &test.window}, Rules: []policy.Rule{signedBy(h.key)}}
		two := h.gateWith(t, p, gate.WithClock(c.now), gate.WithStale(time.Hour), gate.WithTimeout(time.Second), gate.WithPeers(peer{gate: one}))
		for _, g := range []*gate.Gate{one, two} {
			if out := decide(t, g, app.ByDigest()); out.Result != gate.Allow || isStale(out) {
				t.Fatalf("%s: while it answers: %+v", reason, out.Verdicts)
			}
			c.advance(3 * time.Hour)
		}
		c.advance(-time.Hour)
		h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})
		if out := decide(t, two, app.ByDigest()); (out.Result == gate.Allow) != test.runs {
			t.Errorf("%s: %s: %+v", reason, out.Result, out.Verdicts)
		}
	}
}
