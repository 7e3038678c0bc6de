package gate_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// shelf is a store in memory.
type shelf struct {
	mu   sync.Mutex
	kept map[string][]byte
	ttl  time.Duration
}

func (s *shelf) Get(_ context.Context, keys []string) map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string][]byte{}
	for _, key := range keys {
		if value, ok := s.kept[key]; ok {
			known[key] = value
		}
	}
	return known
}

func (s *shelf) Keep(key string, value []byte, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string][]byte{}
	}
	s.kept[key], s.ttl = value, ttl
}

// TestTheSecondReplicaAsksForTheTagAlone counts what a shared cache saves.
func TestTheSecondReplicaAsksForTheTagAlone(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, bad := h.Build("app", "v1", "app"), h.Build("bad", "v1", "bad")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	store := &shelf{}
	replica := func() *gate.Gate { return h.gate(t, signedBy(h.key), gate.WithStore(store)) }
	if out := decide(t, replica(), app.Name); out.Result != gate.Allow || store.ttl <= 0 || store.ttl > time.Hour {
		t.Fatalf("%s, kept for %s", out.Result, store.ttl)
	}
	if out := decide(t, replica(), app.Name); out.Result != gate.Allow || out.Cost.Requests != 1 {
		t.Errorf("%s with %d requests, want one for the tag", out.Result, out.Cost.Requests)
	}
	if out := decide(t, replica(), app.ByDigest()); out.Result != gate.Allow || out.Cost.Requests != 0 {
		t.Errorf("by digest: %s with %d requests", out.Result, out.Cost.Requests)
	}
	before := len(store.kept)
	if out := decide(t, replica(), bad.Name); out.Result != gate.Deny || len(store.kept) != before {
		t.Errorf("unsigned: %s, and %d entries more", out.Result, len(store.kept)-before)
	}
	if out := decide(t, h.gate(t, signedBy(h.stranger), gate.WithStore(store)), app.Name); out.Result != gate.Deny {
		t.Errorf("another key: %s", out.Result)
	}
}

// TestEvidenceOfAnotherRepository: a fact that was proved by evidence from one repository does
// not meet a policy that names another repository, or a prefix of tags, with the same key.
func TestEvidenceOfAnotherRepository(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	signatures := app
	signatures.Repository = "signatures/dev"
	must(0, h.SignLegacy(signatures, byKey(h.key), nil))(t)
	at := func(path, prefix string) rule {
		r := signedBy(h.key)
		r.check.Sources = []attest.Source{{Repository: must(image.ParseRepository(h.Registry.Host() + "/" + path))(t), TagPrefix: prefix}}
		return r
	}
	for name, other := range map[string]rule{
		"another repository": at("signatures/prod", ""), "another prefix": at("signatures/dev", "prod-"), "the image's own": signedBy(h.key),
	} {
		store := &shelf{}
		warm := h.gate(t, at("signatures/dev", ""), gate.WithStore(store))
		if out := decide(t, warm, app.Name); out.Result != gate.Allow || len(store.kept) == 0 {
			t.Fatalf("%s: where it is signed: %s, %d kept", name, out.Result, len(store.kept))
		}
		if out := decide(t, h.gate(t, at("signatures/dev", ""), gate.WithStore(store)), app.ByDigest()); out.Result != gate.Allow || out.Cost.Requests != 0 {
			t.Errorf("%s: the same repository: %s with %d requests", name, out.Result, out.Cost.Requests)
		}
		if out := decide(t, h.gate(t, other, gate.WithStore(store), gate.WithPeers(peer{gate: warm})), app.Name); out.Result != gate.Deny {
			t.Errorf("%s: %s", name, out.Result)
		}
	}
}

// TestAStoreThatLies gives the answer to one question for another, and rubbish.
func TestAStoreThatLies(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, bad := h.Build("app", "v1", "app"), h.Build("bad", "v1", "bad")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	store := &shelf{}
	decide(t, h.gate(t, signedBy(h.key), gate.WithStore(store)), app.Name)
	var entry []byte
	for value := range maps.Values(store.kept) {
		entry = value
	}
	for reason, value := range map[string][]byte{
		"another image's": entry, "cut": entry[:len(entry)/2], "empty": {}, "null": []byte("null"), "no answer": []byte(`{"at":1}`),
	} {
		lies := liar(value)
		if out := decide(t, h.gate(t, signedBy(h.key), gate.WithStore(lies)), bad.Name); out.Result != gate.Deny {
			t.Errorf("%s: %s", reason, out.Result)
		}
		if out := decide(t, h.gate(t, signedBy(h.key), gate.WithStore(lies)), app.Name); out.Result != gate.Allow {
			t.Errorf("%s, and the image is good: %s", reason, out.Result)
		}
	}
}

// liar answers everything alike.
type liar []byte

func (l liar) Get(_ context.Context, keys []string) map[string][]byte {
	known := map[string][]byte{}
	for _, key := range keys {
		known[key] = l
	}
	return known
}

func (liar) Keep(string, []byte, time.Duration) {}
