package gate_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

const room = 2 << 20

// TestAllReplicasRestartWhileTheRegistryIsDown: images verified before are admitted.
func TestAllReplicasRestartWhileTheRegistryIsDown(t *testing.T) {
	hour := time.Hour
	for reason, test := range map[string]struct {
		away  time.Duration
		rules func(*env) policy.Rule
		own   *time.Duration
		runs  bool
	}{
		"control":                    {away: 3 * time.Hour, runs: true},
		"at once":                    {away: time.Second, runs: true},
		"the policy gives an hour":   {away: 3 * time.Hour, own: &hour},
		"the day is over":            {away: 25 * time.Hour},
		"the policy has another key": {away: 3 * time.Hour, rules: func(h *env) policy.Rule { return signedBy(h.stranger) }},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			h, c := newEnv(t, registrytest.Options{}), &clock{}
			app, bad := h.Build("app", "v1", "app"), h.Build("bad", "v1", "bad")
			must(0, h.SignBundle(app, byKey(h.key), nil))(t)
			before := h.keeping(t, c, nil, signedBy(h.key))
			fresh := decide(t, before, app.Name)
			decide(t, before, bad.Name)
			parts := must(before.Snapshot(room, 1))(t)
			if fresh.Result != gate.Allow || len(parts) != 1 {
				t.Fatalf("%s, %d parts", fresh.Result, len(parts))
			}
			h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})
			c.advance(test.away)
			rule := policy.Rule(signedBy(h.key))
			if test.rules != nil {
				rule = test.rules(h)
			}
			after := h.keeping(t, c, test.own, rule)
			if entries := must(after.RestoreTrusted(parts[0]))(t); entries != 2 {
				t.Errorf("%d entries, want a tag and a fact", entries)
			}
			if again := must(after.RestoreTrusted(parts[0]))(t); again != 0 {
				t.Errorf("the same once more: %d entries", again)
			}
			out := decide(t, after, app.Name)
			if runs := out.Result == gate.Allow; runs != test.runs || out.Result == gate.Deny {
				t.Errorf("%s, want it to run: %t: %+v", out.Result, test.runs, out.Verdicts)
			}
			if test.runs && out.Verdicts[0].Pinned.Digest() != fresh.Verdicts[0].Pinned.Digest() {
				t.Errorf("pinned to %s", out.Verdicts[0].Pinned)
			}
			if out := decide(t, after, bad.Name); out.Result == gate.Allow {
				t.Error("an unsigned image is allowed")
			}
		})
	}
}

// TestASnapshotHasBounds: the newest have room.
func TestASnapshotHasBounds(t *testing.T) {
	h, c := newEnv(t, registrytest.Options{}), &clock{}
	g := h.keeping(t, c, nil, signedBy(h.key))
	for i := range 5 {
		app := h.Build(fmt.Sprintf("app%d", i), "v1", fmt.Sprint(i))
		must(0, h.SignBundle(app, byKey(h.key), nil))(t)
		decide(t, g, app.Name)
		c.advance(2 * time.Hour)
	}
	parts := must(g.Snapshot(room, 1))(t)
	if len(parts) != 1 || len(parts[0]) > room {
		t.Fatalf("%d parts", len(parts))
	}
	newest, oldest := bytes.Index(parts[0], []byte("/app4:v1")), bytes.Index(parts[0], []byte("/app0:v1"))
	if newest < 0 || oldest < newest {
		t.Errorf("the newest stands at %d, the oldest at %d", newest, oldest)
	}
	if again := must(g.Snapshot(room, 1))(t); !bytes.Equal(again[0], parts[0]) {
		t.Error("a second snapshot of the same differs")
	}
	for reason, bad := range map[string][2]int{"no room for an answer": {1 << 20, 1}, "no part": {room, 0}, "more than is read": {17 << 20, 1}} {
		if _, err := g.Snapshot(bad[0], bad[1]); err == nil {
			t.Errorf("%s: taken", reason)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	g := h.keeping(t, &clock{}, nil, signedBy(h.key))
	for reason, raw := range map[string]string{
		"no JSON":          "tags",
		"a later version":  `{"version":2}`,
		"no version":       `{}`,
		"an unknown field": `{"version":1,"admit":["all"]}`,
	} {
		if n, err := g.RestoreTrusted([]byte(raw)); err == nil || n != 0 {
			t.Errorf("%s: %d entries, %v", reason, n, err)
		}
	}
	for reason, raw := range map[string]string{
		"a tag that is none":         `{"version":1,"tags":[{"scope":"","reference":"a b","digest":"sha256:` + zeros + `","at":1}]}`,
		"a digest in place of a tag": `{"version":1,"tags":[{"scope":"","reference":"a.example/b@sha256:` + zeros + `","digest":"sha256:` + zeros + `","at":1}]}`,
		"from long ago":              `{"version":1,"tags":[{"scope":"","reference":"a.example/b:v1","digest":"sha256:` + zeros + `","at":1}]}`,
		"gone, without a fact":       `{"version":1,"gone":[{"fact":"","repository":"a.example/b","at":1}]}`,
		"a fact without a key":       `{"version":1,"facts":[{"at":1,"fresh":1,"until":1,"answer":{}}]}`,
	} {
		if n, err := g.RestoreTrusted([]byte(raw)); err != nil || n != 0 {
			t.Errorf("%s: %d entries, %v", reason, n, err)
		}
	}
	if _, err := h.gate(t, signedBy(h.key)).RestoreTrusted([]byte(`{"version":1}`)); err == nil {
		t.Error("a gate that keeps nothing takes a snapshot")
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func FuzzRestoreTrusted(f *testing.F) {
	h := newEnv(f, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(f)
	p := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{signedBy(h.key)}}
	g := h.gateWith(f, p, gate.WithStale(time.Hour))
	decide(f, g, app.Name)
	for _, part := range must(g.Snapshot(room, 1))(f) {
		f.Add(part)
	}
	f.Add([]byte(`{"version":1,"tags":[{"reference":"a/b:c","digest":"sha256:` + zeros + `","at":1}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if n, err := g.RestoreTrusted(raw); err != nil && n != 0 {
			t.Errorf("%d entries of what cannot be read: %v", n, err)
		}
	})
}

// TestGoneIsNewerThanItsFact: one replica verified a signature, it was deleted, and another
// replica found none; the first restores the other's snapshot, and saves its own. A start from
// either, while the registry is away, does not use the signature.
func TestGoneIsNewerThanItsFact(t *testing.T) {
	for _, row := range []struct {
		reason string
		taken  bool
		want   gate.Result
	}{
		{"the signature was taken away", true, gate.Error},
		{"it is there", false, gate.Allow},
	} {
		t.Run(row.reason, func(t *testing.T) {
			h, c := newEnv(t, registrytest.Options{}), &clock{}
			start := time.Now().Truncate(time.Hour).Add(24 * time.Hour)
			at := func(after time.Duration) { c.advance(start.Add(after).Sub(c.now())) }
			at(0)
			app := h.Build("app", "v1", "app")
			must(0, h.SignBundle(app, byKey(h.key), nil))(t)
			first, other := h.keeping(t, c, nil, signedBy(h.key)), h.keeping(t, c, nil, signedBy(h.key))
			at(20 * time.Minute)
			if out := decide(t, other, app.Name); out.Result != gate.Allow {
				t.Fatal(out.Result)
			}
			at(80 * time.Minute)
			if out := decide(t, first, app.Name); out.Result != gate.Allow {
				t.Fatal(out.Result)
			}
			if row.taken {
				h.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.ForgeReferrers()})
			}
			at(110 * time.Minute)
			if out := decide(t, other, app.Name); (out.Result == gate.Allow) == row.taken {
				t.Fatalf("beforehand, %s", out.Result)
			}
			saved := must(other.Snapshot(room, 4))(t)
			for _, part := range saved {
				must(first.RestoreTrusted(part))(t)
			}
			at(111 * time.Minute)
			merged := must(first.Snapshot(room, 4))(t)
			h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})
			at(150 * time.Minute)
			for of, parts := range map[string][][]byte{"the other's": saved, "the first's": merged} {
				after := h.keeping(t, c, nil, signedBy(h.key))
				for _, part := range parts {
					must(after.RestoreTrusted(part))(t)
				}
				if out := decide(t, after, app.Name); out.Result != row.want {
					t.Errorf("from %s snapshot: %s, want %s", of, out.Result, row.want)
				}
			}
		})
	}
}
