package gate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

func isStale(out gate.Outcome) bool {
	return slices.ContainsFunc(out.Verdicts, func(v gate.Verdict) bool {
		return slices.ContainsFunc(v.Warnings, func(r policy.Reason) bool { return r.Code == policy.Stale })
	})
}

// keeping makes a gate that uses stale claims for a day, with a policy that may set its own limit.
func (h *env) keeping(t *testing.T, c *clock, own *time.Duration, rules ...policy.Rule) *gate.Gate {
	t.Helper()
	p := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Settings: policy.Settings{StaleIfError: own}, Rules: rules}
	return h.gateWith(t, p, gate.WithClock(c.now), gate.WithStale(24*time.Hour), gate.WithTimeout(time.Second))
}

// TestARegistryThatDoesNotAnswer: while it is down, verified images run, by tag and by digest, and
// no others. The answers of one that responds count.
func TestARegistryThatDoesNotAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		do   registrytest.Action
		runs bool
	}{
		"503":       {registrytest.Status(503), true},
		"429":       {registrytest.RetryAfter(429, "3600"), true},
		"no answer": {registrytest.Hang(), true},
		"not there": {registrytest.Status(404), false},
		"refused":   {registrytest.Status(401), false},
		"forbidden": {registrytest.Status(403), false},
		"lies":      {registrytest.LieDigest("sha256:../../x"), false},
		"a page":    {registrytest.HTML(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, c := newEnv(t, registrytest.Options{}), &clock{}
			app, bad, unseen := h.Build("app", "v1", "app"), h.Build("bad", "v1", "bad"), h.Build("unseen", "v1", "unseen")
			must(0, h.SignBundle(app, byKey(h.key), nil))(t)
			must(0, h.SignBundle(unseen, byKey(h.key), nil))(t)
			g := h.keeping(t, c, nil, signedBy(h.key))
			fresh := decide(t, g, app.Name)
			if fresh.Result != gate.Allow || isStale(fresh) || decide(t, g, bad.Name).Result != gate.Deny {
				t.Fatalf("while it answers: %s %+v", fresh.Result, fresh.Verdicts)
			}
			h.Registry.SetFaults(registrytest.Fault{Do: test.do})
			c.advance(3 * time.Hour)
			for _, reference := range []string{app.Name, app.ByDigest()} {
				out := decide(t, g, reference)
				if runs := out.Result == gate.Allow; runs != test.runs || runs != isStale(out) {
					t.Errorf("%s: %s, stale %t: %+v", reference, out.Result, isStale(out), out.Verdicts)
				}
				if test.runs && out.Verdicts[0].Pinned.Digest() != fresh.Verdicts[0].Pinned.Digest() {
					t.Errorf("%s: pinned to %s", reference, out.Verdicts[0].Pinned)
				}
			}
			for what, other := range map[string]string{"unsigned": bad.Name, "signed, and never looked at": unseen.Name} {
				if out := decide(t, g, other); out.Result == gate.Allow {
					t.Errorf("%s: allowed: %+v", what, out.Verdicts)
				}
			}
		})
	}
}

// TestOnlyValidClaimsAreStale has one thing wrong in each row, and a control.
func TestOnlyValidClaimsAreStale(t *testing.T) {
	never, hour := time.Duration(0), time.Hour
	for reason, test := range map[string]struct {
		own  *time.Duration
		age  time.Duration
		do   func(h *env, c *clock, g *gate.Gate) *gate.Gate
		runs bool
	}{
		"control":                          {age: 23 * time.Hour, runs: true},
		"too old":                          {age: 25 * time.Hour},
		"the policy wants an answer":       {own: &never, age: 2 * time.Hour},
		"the policy gives an hour":         {own: &hour, age: 2 * time.Hour},
		"the policy gives an hour, in it":  {own: &hour, age: 59 * time.Minute, runs: true},
		"the policy has another key":       {age: 2 * time.Hour, do: func(h *env, c *clock, _ *gate.Gate) *gate.Gate { return h.keeping(t, c, nil, signedBy(h.stranger)) }},
		"another process, which forgot it": {age: 2 * time.Hour, do: func(h *env, c *clock, _ *gate.Gate) *gate.Gate { return h.keeping(t, c, nil, signedBy(h.key)) }},
		"the signature is gone, and was seen to be": {age: time.Minute, do: func(h *env, c *clock, g *gate.Gate) *gate.Gate {
			h.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.Body([]byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`))})
			c.advance(2 * time.Hour)
			decide(t, g, h.Registry.Host()+"/app:v1")
			return g
		}},
		"the tag is gone, and was seen to be": {age: time.Minute, do: func(h *env, c *clock, g *gate.Gate) *gate.Gate {
			h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(404)})
			c.advance(time.Minute)
			decide(t, g, h.Registry.Host()+"/app:v1")
			return g
		}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			h, c := newEnv(t, registrytest.Options{}), &clock{}
			app := h.Build("app", "v1", "app")
			must(0, h.SignBundle(app, byKey(h.key), nil))(t)
			g := h.keeping(t, c, test.own, signedBy(h.key))
			if out := decide(t, g, app.Name); out.Result != gate.Allow {
				t.Fatalf("while it answers: %+v", out.Verdicts)
			}
			if test.do != nil {
				g = test.do(h, c, g)
			}
			h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})
			c.advance(test.age)
			out := decide(t, g, app.Name)
			if runs := out.Result == gate.Allow; runs != test.runs || out.Result == gate.Deny {
				t.Errorf("%s, want it to run: %t: %+v", out.Result, test.runs, out.Verdicts)
			}
		})
	}
}

// TestWithoutStaleNothingOutlivesItsAge is the behaviour of the command line.
func TestWithoutStaleNothingOutlivesItsAge(t *testing.T) {
	h, c := newEnv(t, registrytest.Options{}), &clock{}
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	g := h.gate(t, signedBy(h.key), gate.WithClock(c.now), gate.WithTimeout(time.Second))
	if out := decide(t, g, app.Name); out.Result != gate.Allow {
		t.Fatalf("while it answers: %+v", out.Verdicts)
	}
	h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})
	c.advance(2 * time.Hour)
	if out := decide(t, g, app.ByDigest()); out.Result != gate.Error {
		t.Errorf("%s: %+v", out.Result, out.Verdicts)
	}
}

// TestASilentRegistryIsWaitedForOnce: a node that is drained meanwhile.
func TestASilentRegistryIsWaitedForOnce(t *testing.T) {
	h, c := newEnv(t, registrytest.Options{}), &clock{}
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	g := h.keeping(t, c, nil, signedBy(h.key))
	decide(t, g, app.Name)
	h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Hang()})
	c.advance(2 * time.Hour)
	if out := decide(t, g, app.Name); !isStale(out) {
		t.Fatalf("%s: %+v", out.Result, out.Verdicts)
	}
	before := len(h.Registry.Requests())
	for range 20 {
		if out := decide(t, g, app.Name); !isStale(out) || out.Cost.Requests != 0 {
			t.Fatalf("%s with %d requests", out.Result, out.Cost.Requests)
		}
	}
	if after := len(h.Registry.Requests()); after != before {
		t.Errorf("%d requests more", after-before)
	}
	h.Registry.SetFaults()
	for tries := 1; ; tries++ { // until the request that still hangs is given up
		c.advance(time.Minute)
		out := decide(t, g, app.Name)
		if out.Result != gate.Allow || tries == 20 {
			t.Fatalf("when it is back: %s, stale %t", out.Result, isStale(out))
		}
		if !isStale(out) {
			return
		}
	}
}

func TestStaleRefuses(t *testing.T) {
	for reason, age := range map[string]time.Duration{"less than nothing": -time.Second, "more than the limit": policy.MaxStale + 1} {
		if _, err := gate.New(gate.Config{Registries: newEnv(t, registrytest.Options{}), State: gate.Fixed{}}, gate.WithStale(age)); err == nil {
			t.Errorf("%s: taken", reason)
		}
	}
}
