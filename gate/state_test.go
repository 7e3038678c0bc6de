package gate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
)

func TestCurrentReportsMissingParts(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	unsigned := h.Build("app", "v1", "app")
	var state gate.Current
	g := must(gate.New(gate.Config{Registries: h, State: &state}))(t)
	trust := prover{Snapshot: h.snapshot, ByFormat: verify.ByFormat{attest.Bundle: bundle.New(h.snapshot)}}
	strict := must(set.New(&policy.Policy{Kind: "Test", Name: "test", Rules: []policy.Rule{signedBy(h.key)}}))(t)

	for _, c := range []struct {
		step  func()
		ready bool
		says  string
		want  gate.Result
	}{
		{func() {}, false, "neither", gate.Error},
		{func() { state.ReplaceProver(trust) }, false, "policies", gate.Error},
		{func() { state.ReplacePolicies(strict) }, true, "unsigned", gate.Deny},
		{func() { state.ReplacePolicies(must(set.New())(t)) }, true, "no-policy", gate.Unchecked},
		{func() { state.Replace(gate.Snapshot{Policies: strict, Prover: trust}) }, true, "unsigned", gate.Deny},
	} {
		c.step()
		if err := state.Ready(); (err == nil) != c.ready {
			t.Errorf("ready: %v, want %t", err, c.ready)
		}
		outcome := decide(t, g, unsigned.Name)
		if text := fmt.Sprint(outcome.Reasons, outcome.Verdicts); outcome.Result != c.want || !strings.Contains(text, c.says) {
			t.Errorf("%s %s, want %s and %q", outcome.Result, text, c.want, c.says)
		}
	}
	var late gate.Current
	late.ReplacePolicies(strict)
	if err := late.Ready(); err == nil || !strings.Contains(err.Error(), "roots") {
		t.Errorf("policies without trust: %v", err)
	}
}

func TestFailOpen(t *testing.T) {
	pods := []policy.Target{{Version: "v1", Kind: "Pod"}}
	closed := func(targets ...policy.Target) *policy.Policy {
		return &policy.Policy{Kind: "Test", Name: "closed", Rules: []policy.Rule{rule{}}, Targets: targets}
	}
	open := &policy.Policy{Kind: "Test", Name: "open", Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{rule{}}, Targets: pods}
	audit := &policy.Policy{Kind: "Test", Name: "audit", Settings: policy.Settings{AuditOnly: true}, Rules: []policy.Rule{rule{}}, Targets: pods}
	elsewhere := &policy.Policy{Kind: "Test", Name: "there", Namespace: "there", Rules: []policy.Rule{rule{}}, Targets: pods}
	pod := policy.Subject{Version: "v1", Kind: "Pod", Namespace: "here"}
	bare, unread := pod, policy.Subject{Version: "v1", Kind: "Pod", Shape: policy.Shape{Bare: true}} // as reviews of images have them
	bare.Bare = true
	added := policy.Target{Version: "v1", Kind: "Pod", Subresource: "ephemeralcontainers"}
	for _, c := range []struct {
		reason   string
		policies []*policy.Policy
		subject  policy.Subject
		want     bool
	}{
		{"no policies", nil, pod, true},
		{"those that match fail open or audit", []*policy.Policy{open, audit}, pod, true},
		{"one of them fails closed", []*policy.Policy{open, audit, closed(pods...)}, pod, false},
		{"it is for another namespace", []*policy.Policy{open, elsewhere}, pod, true},
		{"it is for this namespace", []*policy.Policy{open, elsewhere}, policy.Subject{Version: "v1", Kind: "Pod", Namespace: "there"}, false},
		{"the Namespace is not in itself", []*policy.Policy{{
			Kind: "Test", Name: "own", Namespace: "here", Rules: []policy.Rule{rule{}}, Targets: []policy.Target{{Version: "v1", Kind: "Namespace"}},
		}}, policy.Subject{Version: "v1", Kind: "Namespace", Namespace: "here"}, true},
		{"another kind", []*policy.Policy{closed(pods...)}, policy.Subject{Version: "v1", Kind: "ConfigMap", Namespace: "here"}, true},
		{"another group", []*policy.Policy{closed(pods...)}, policy.Subject{Group: "x", Version: "v1", Kind: "Pod", Namespace: "here"}, true},
		{"any kind", []*policy.Policy{closed(policy.Target{Group: "*", Version: "*", Kind: "*"})}, policy.Subject{Group: "x", Version: "v1", Kind: "Pod"}, false},
		{"an added container is a Pod's", []*policy.Policy{closed(pods...)}, policy.Subject{Version: "v1", Kind: "Pod", Subresource: "ephemeralcontainers"}, false},
		{"another subresource", []*policy.Policy{closed(pods...)}, policy.Subject{Version: "v1", Kind: "Pod", Subresource: "exec"}, true},
		{"its namespaces", []*policy.Policy{closed(policy.Target{Version: "v1", Kind: "Pod", Namespaces: []string{"he*"}})}, pod, false},
		{"other namespaces", []*policy.Policy{closed(policy.Target{Version: "v1", Kind: "Pod", Namespaces: []string{"th*"}})}, pod, true},
		{"the namespace was not read, and it is for one", []*policy.Policy{open, elsewhere}, unread, false},
		{"the namespace was not read, and it is for some", []*policy.Policy{closed(policy.Target{Version: "v1", Kind: "Pod", Namespaces: []string{"th*"}})}, unread, false},
		{"the namespace was not read, and it is of another kind", []*policy.Policy{closed(policy.Target{Version: "v1", Kind: "Job", Namespaces: []string{"th*"}})}, unread, true},
		{"the namespace was not read, and all fail open", []*policy.Policy{open, audit}, unread, true},
		{"an object of no namespace", []*policy.Policy{open, elsewhere}, policy.Subject{Version: "v1", Kind: "Pod"}, true},
		{"of a bare pod it is unknown whether containers are added", []*policy.Policy{closed(added)}, bare, false},
		{"of a pod that was read it is known", []*policy.Policy{closed(added)}, pod, true},
		{"it lists no targets", []*policy.Policy{closed()}, pod, false},
		{"it has no rules", []*policy.Policy{{Kind: "Test", Name: "none"}}, pod, true},
	} {
		set := must(set.New(c.policies...))(t)
		if got := (gate.Snapshot{Policies: set}).FailOpen(&c.subject); got != c.want {
			t.Errorf("%s: %t, want %t", c.reason, got, c.want)
		}
	}
	if (gate.Snapshot{}).FailOpen(&pod) {
		t.Error("without policies it fails open")
	}
}

// TestDenyOverridesFailOpen: an image that was not evaluated may be the denied one.
func TestDenyOverridesFailOpen(t *testing.T) {
	for effect, want := range map[policy.OverrideEffect]bool{policy.OverrideDeny: false, policy.OverrideAllow: true} {
		override := &policy.Override{Name: "bad-day", Hash: "1", Effect: effect, Reason: "it is broken", Expires: time.Now().Add(time.Hour), Repositories: []string{"*"}}
		set := must(must(set.New())(t).WithOverrides(override))(t)
		if got := (gate.Snapshot{Policies: set}).FailOpen(&policy.Subject{Kind: "Pod", Namespace: "here", Time: time.Now()}); got != want {
			t.Errorf("%s: %t, want %t", effect, got, want)
		}
	}
}

// watcher counts the calls of an observer.
type watcher struct {
	mu           sync.Mutex
	begun, ended map[gate.Phase]int
	asked        map[string]int
}

func newWatcher() *watcher {
	return &watcher{begun: map[gate.Phase]int{}, ended: map[gate.Phase]int{}, asked: map[string]int{}}
}

func (w *watcher) Begin(ctx context.Context, phase gate.Phase) (context.Context, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun[phase]++
	return ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended[phase]++
	}
}

func (w *watcher) Asked(layer claims.Layer, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[fmt.Sprint(layer, " ", known)]++
}

func TestObserverCalls(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	w := newWatcher()
	g := h.gate(t, signedBy(h.key), gate.WithObserver(w), gate.WithPeers(peer{}))
	decide(t, g, app.Name)
	if want := fmt.Sprint(map[string]int{"tags false": 1, "facts false": 1, "none false": 1, "peers false": 1}); fmt.Sprint(w.asked) != want {
		t.Errorf("cold: asked %v, want %s", w.asked, want)
	}
	all := fmt.Sprint(map[gate.Phase]int{gate.PhaseResolve: 1, gate.PhaseDiscover: 1, gate.PhaseProve: 1, gate.PhaseDecide: 2})
	if fmt.Sprint(w.begun) != all || fmt.Sprint(w.ended) != all {
		t.Errorf("begun %v, ended %v, want %s", w.begun, w.ended, all)
	}
	clear(w.asked)
	decide(t, g, app.Name)
	if want := fmt.Sprint(map[string]int{"tags true": 1, "facts true": 1}); fmt.Sprint(w.asked) != want {
		t.Errorf("warm: asked %v, want %s", w.asked, want)
	}
	if w.begun[gate.PhaseResolve] != 1 || w.begun[gate.PhaseDecide] != 4 {
		t.Errorf("warm: begun %v", w.begun)
	}
}

// deaf is a verifier that heeds no deadline.
type deaf struct {
	prover
	release chan struct{}
}

func (d deaf) Verify(context.Context, image.Pinned, attest.Evidence, verify.Authority) (verify.Fact, error) {
	<-d.release
	return verify.Fact{}, context.DeadlineExceeded
}

// deafer does not even look up keys in time.
type deafer struct{ deaf }

func (d deafer) Resolve(ctx context.Context, a verify.Authority) (verify.Authority, error) {
	<-d.release
	return d.prover.Resolve(ctx, a)
}

func TestTheDeadlineHoldsWhateverHangs(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	set := must(set.New(&policy.Policy{Kind: "Test", Name: "test", Rules: []policy.Rule{signedBy(h.key)}}))(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	honest := prover{Snapshot: h.snapshot, ByFormat: verify.ByFormat{attest.Bundle: bundle.New(h.snapshot)}}
	for _, c := range []struct {
		reason string
		prover gate.Prover
		fault  registrytest.Fault
	}{
		{"a verifier", deaf{honest, release}, registrytest.Fault{}},
		{"a key", deafer{deaf{honest, release}}, registrytest.Fault{}},
		{"the tag", honest, registrytest.Fault{Kind: registrytest.Manifest, Do: registrytest.Hang()}},
		{"the evidence", honest, registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.Hang()}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			h.Registry.SetFaults()
			if c.fault.Do != nil {
				h.Registry.SetFaults(c.fault)
			}
			g := must(gate.New(gate.Config{Registries: h, State: gate.Fixed{Policies: set, Prover: c.prover}}))(t)
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			started := time.Now()
			outcome := g.Decide(ctx, must(gate.ForImage(app.Name, "default"))(t))
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
			if outcome.Result != gate.Error || !slices.Contains(codes(outcome.Verdicts[0].Reasons), policy.TimedOut) {
				t.Errorf("%s %+v", outcome.Result, outcome.Verdicts)
			}
		})
	}
	h.Registry.SetFaults()
	expect(t, decide(t, must(gate.New(gate.Config{Registries: h, State: gate.Fixed{Policies: set, Prover: honest}}))(t), app.Name), gate.Allow, policy.Verified)
}

// counting counts sessions.
type counting struct {
	*env
	opened []gate.Access
}

func (c *counting) Open(ctx context.Context, access gate.Access, repository image.Repository) (gate.Session, error) {
	c.opened = append(c.opened, access)
	return c.env.Open(ctx, access, repository)
}

func TestEqualAccessOpensOneSession(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	p := &policy.Policy{Kind: "Test", Name: "test"}
	for i := range 50 {
		r := signedBy(h.key)
		if i == 49 {
			r.check.Credentials.Secrets = []string{"default/pull"}
		}
		p.Rules = append(p.Rules, numbered{r, i})
	}
	c := &counting{env: h}
	outcome := h.gateAt(t, c, p).Decide(t.Context(), pod(t, app.Name, app.Name))
	expect(t, outcome, gate.Allow, policy.Verified)
	if len(c.opened) != 2 {
		t.Errorf("%d sessions for two kinds of access", len(c.opened))
	}
	if id := c.opened[0].Workload; id.Namespace != "default" || id.ServiceAccount != "default" {
		t.Errorf("the workload is %+v", id)
	}
	if n := len(outcome.Verdicts[0].Decisions); n != 50 {
		t.Errorf("%d decisions", n)
	}
}

type numbered struct {
	rule
	n int
}

func (n numbered) Name() string { return fmt.Sprint("rule", n.n) }

// breaking is a rule that panics.
type breaking struct{ rule }

func (breaking) Plan(context.Context, *policy.Subject, []policy.Image) (policy.RulePlan, error) {
	panic("an index out of range")
}

func TestAPanicInARuleDenies(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	expect(t, decide(t, h.gate(t, breaking{}), "app:v1"), gate.Error, policy.Internal)
}
