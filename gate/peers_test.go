package gate_test

import (
	"bytes"
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// peer is another gate, asked directly; change is what happens on the way.
type peer struct {
	gate   *gate.Gate
	change func(map[string][]byte) map[string][]byte
	asked  *[][]string
	mu     *sync.Mutex
}

func (p peer) Get(_ context.Context, keys []string) map[string][]byte {
	if p.asked != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		*p.asked = append(*p.asked, keys)
	}
	if p.gate == nil {
		return nil
	}
	known := p.gate.Remembered(keys)
	if p.change != nil {
		return p.change(known)
	}
	return known
}

func TestPeersAreAskedBeforeTheRegistry(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, other := h.Build("app", "v1", "app"), h.Build("other", "v1", "other")
	must(0, h.AttestBundle(app, byKey(h.key), provenance, map[string]any{"clean": true, "n": 1e21}))(t)
	must(0, h.AttestBundle(other, byKey(h.key), provenance, map[string]any{"clean": true}))(t)
	asks := attestedBy(h.key, provenance)
	asks.check.Attestations[0].Condition = saysClean{}
	for _, c := range []struct {
		reason string
		change func(map[string][]byte) map[string][]byte
		free   bool
	}{
		{"as it is", nil, true},
		{"no peer has it", func(map[string][]byte) map[string][]byte { return nil }, false},
		{"the answer is cut", replaced(func(b []byte) []byte { return b[:len(b)/2] }), false},
		{"it is about another digest", replaced(func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(app.Manifest.Digest), []byte(other.Manifest.Digest))
		}), false},
		{"its facts are about another digest", replaced(func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"subject":"`+app.Manifest.Digest), []byte(`"subject":"`+other.Manifest.Digest), 1)
		}), false},
		{"its role is another", replaced(func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"role":"attestation"`), []byte(`"role":"signature"`), 1)
		}), false},
		{"its statement is of another type", replaced(func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"predicateType":"`+provenance), []byte(`"predicateType":"https://example.test`), 1)
		}), false},
		{"it is older than facts may be", replaced(func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"age":`), []byte(`"age":3600000000000`), 1)
		}), false},
		{"it comes from the future", replaced(func(b []byte) []byte { return bytes.Replace(b, []byte(`"age":`), []byte(`"age":-1`), 1) }), false},
		{"it has no facts", replaced(func(b []byte) []byte { return append(b[:bytes.Index(b, []byte(`"facts":`))], `"facts":[]}`...) }), false},
		{"it has an unknown field", replaced(func(b []byte) []byte { return append([]byte(`{"more":1,`), b[1:]...) }), false},
		{"it is too large", replaced(func(b []byte) []byte { return append(b, strings.Repeat(" ", 1<<20)...) }), false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			one := h.gate(t, asks)
			expect(t, decide(t, one, app.ByDigest()), gate.Allow, policy.Verified)
			two := h.gate(t, asks, gate.WithPeers(peer{gate: one, change: c.change}))
			h.Registry.Reset()
			expect(t, decide(t, two, app.ByDigest()), gate.Allow, policy.Verified)
			if n := len(h.Registry.Requests()); (n == 0) != c.free {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func replaced(change func([]byte) []byte) func(map[string][]byte) map[string][]byte {
	return func(known map[string][]byte) map[string][]byte {
		known = maps.Clone(known)
		for key, fact := range known {
			known[key] = change(bytes.Clone(fact))
		}
		return known
	}
}

// TestPeersDoNotLengthenALife passes a fact around two gates: it ends when the
// first proof does.
func TestPeersDoNotLengthenALife(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	clock := &clock{}
	now := gate.WithClock(clock.now)
	one := h.gate(t, signedBy(h.key), now)
	decide(t, one, app.ByDigest())
	clock.advance(40 * time.Minute)
	two := h.gate(t, signedBy(h.key), now, gate.WithPeers(peer{gate: one}))
	h.Registry.Reset()
	expect(t, decide(t, two, app.ByDigest()), gate.Allow, policy.Verified)
	if n := len(h.Registry.Requests()); n != 0 {
		t.Fatalf("%d requests for claims of the peer", n)
	}
	clock.advance(21 * time.Minute)
	expect(t, decide(t, two, app.ByDigest()), gate.Allow, policy.Verified)
	if n := len(h.Registry.Requests()); n == 0 {
		t.Error("a peer's fact of an hour ago is used")
	}
}

// TestAnOldFactOfAPeerDoesNotDeny: a better statement may have come since.
func TestAnOldFactOfAPeerDoesNotDeny(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	clock := &clock{}
	now := gate.WithClock(clock.now)
	asks := attestedBy(h.key, provenance)
	asks.check.Attestations[0].Condition = saysClean{}
	one := h.gate(t, asks, now)
	must(0, h.AttestBundle(app, byKey(h.key), provenance, map[string]any{"clean": false}))(t)
	expect(t, decide(t, one, app.ByDigest()), gate.Deny, policy.ConditionFailed)
	must(0, h.AttestBundle(app, byKey(h.key), provenance, map[string]any{"clean": true}))(t)
	clock.advance(11 * time.Second)
	two := h.gate(t, asks, now, gate.WithPeers(peer{gate: one}))
	expect(t, decide(t, two, app.ByDigest()), gate.Allow, policy.Verified)
}

func TestPeersAreAskedOnceAndOnlyForFacts(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	both := rule{policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Requirements: signedBy(h.key).check.Requirements, Attestations: attestedBy(h.key, provenance).check.Attestations}}}
	one := h.gate(t, both)
	expect(t, decide(t, one, app.Name), gate.Deny, policy.Unsigned) // one remembers "none found"
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	must(0, h.AttestBundle(app, byKey(h.key), provenance, map[string]any{}))(t)
	var asked [][]string
	two := h.gate(t, both, gate.WithPeers(peer{gate: one, asked: &asked, mu: &sync.Mutex{}}))
	expect(t, decide(t, two, app.Name), gate.Allow, policy.Verified)
	if len(asked) != 1 || len(asked[0]) != 2 {
		t.Errorf("asked %q", asked)
	}
	never := signedBy(h.key)
	never.check.Requirements[0].Members[0].Authority.MaxAge = -1
	asked = nil
	decide(t, h.gate(t, never, gate.WithPeers(peer{gate: two, asked: &asked, mu: &sync.Mutex{}})), app.Name)
	if len(asked) != 0 {
		t.Errorf("asked %q for claims that are never cached", asked)
	}
	if known := two.Remembered([]string{"", "[]", `["1"]`, strings.Repeat("[", 5000), "tag"}); len(known) != 0 {
		t.Errorf("nonsense is known: %q", known)
	}
}

// TestWarmAdmissionSendsNoRequest: claims of this replica are requested neither from another one
// nor from a registry, also once they are older than "none found" may be, until their own end.
func TestWarmAdmissionSendsNoRequest(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	must(0, h.AttestBundle(app, byKey(h.key), provenance, map[string]any{"clean": true}))(t)
	attested := attestedBy(h.key, provenance).check.Attestations
	attested[0].Condition = saysClean{}
	both := rule{policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Requirements: signedBy(h.key).check.Requirements, Attestations: attested}}}
	clock := &clock{}
	var asked [][]string
	g := h.gate(t, both, gate.WithClock(clock.now), gate.WithPeers(peer{asked: &asked, mu: &sync.Mutex{}}))
	for _, row := range []struct {
		reason string
		later  time.Duration
		asks   bool
	}{
		{"not verified yet", 0, true},
		{"a moment ago", 0, false},
		{"a minute ago", time.Minute, false},
		{"just within its age", 58 * time.Minute, false},
		{"its age is over", 2 * time.Minute, true},
	} {
		clock.advance(row.later)
		asked = nil
		h.Registry.Reset()
		expect(t, decide(t, g, app.ByDigest()), gate.Allow, policy.Verified)
		if requests := len(h.Registry.Requests()); (len(asked) > 0) != row.asks || (requests > 0) != row.asks {
			t.Errorf("%s: %d questions to others, %d requests to the registry", row.reason, len(asked), requests)
		}
	}
}
