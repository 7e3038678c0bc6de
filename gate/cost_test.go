package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// settleTime is the registry's delay in tests that count rounds: requests that
// are made together must be seen together.
const settleTime = 100 * time.Millisecond

func legacy(h *env, image gatetest.Image) error  { return h.SignLegacy(image, byKey(h.key), nil) }
func bundled(h *env, image gatetest.Image) error { return h.SignBundle(image, byKey(h.key), nil) }
func notarised(h *env, image gatetest.Image) error {
	return h.SignNotation(image, h.notary, verifytest.Notation{})
}
func byTheKey(h *env) policy.Rule    { return signedBy(h.key) }
func byTheNotary(h *env) policy.Rule { return notarized(h.notary) }

func requests(h *env) string {
	var b strings.Builder
	for _, r := range h.Registry.Requests() {
		fmt.Fprintln(&b, "  ", r)
	}
	return b.String()
}

func TestEightContainersOfOneImageCostOneProof(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "v1", "one")
	must(0, legacy(h, image))(t)
	g := h.gate(t, signedBy(h.key))
	decide(t, h.gate(t, signedBy(h.key)), image.Name) // the host is known from here on
	h.Registry.Reset()
	decide(t, h.gate(t, signedBy(h.key)), image.Name)
	alone := len(h.Registry.Requests())

	h.Registry.Reset()
	outcome := g.Decide(t.Context(), pod(t, image.Name, image.Name, image.Name, image.Name, image.Name, image.Name, image.Name, image.Name))
	if outcome.Result != gate.Allow || len(outcome.Verdicts) != 8 {
		t.Fatalf("%s with %d verdicts: %+v", outcome.Result, len(outcome.Verdicts), outcome.Reasons)
	}
	if got := len(h.Registry.Requests()); got != alone {
		t.Errorf("eight containers cost %d requests, one costs %d:\n%s", got, alone, requests(h))
	}
}

// TestEightImagesTakeNoMoreRoundsThanOne: at a host that is known to have the referrers API.
// The first eight of a host make eight requests more, for referrers tags, which is more than
// run at once to one host: one round more.
func TestEightImagesTakeNoMoreRoundsThanOne(t *testing.T) {
	h := newEnv(t, registrytest.Options{Delay: settleTime})
	for i, most := range []int{4, 3} {
		var names []string
		for n := range 8 {
			image := h.Build(fmt.Sprintf("app%d", n+8*i), "v1", fmt.Sprint(n, i))
			must(0, legacy(h, image))(t)
			names = append(names, image.Name)
		}
		h.Registry.Reset()
		outcome := h.gate(t, signedBy(h.key)).Decide(t.Context(), pod(t, names...))
		if outcome.Result != gate.Allow {
			t.Fatalf("%s: %+v", outcome.Result, outcome.Verdicts)
		}
		if got := h.Registry.Rounds(); got > most {
			t.Errorf("%d serial rounds for eight images, want at most %d:\n%s", got, most, requests(h))
		}
	}
}

func TestWarmDigestSendsNoRequest(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "v1", "warm")
	must(0, legacy(h, image))(t)
	g := h.gate(t, signedBy(h.key))
	decide(t, g, image.ByDigest())
	h.Registry.Reset()
	outcome := decide(t, g, image.ByDigest())
	if outcome.Result != gate.Allow {
		t.Fatalf("%s: %+v", outcome.Result, outcome.Verdicts)
	}
	if got := len(h.Registry.Requests()); got != 0 || outcome.Cost.Requests != 0 {
		t.Errorf("%d requests (the verdict has %d), want none:\n%s", got, outcome.Cost.Requests, requests(h))
	}
}

func BenchmarkWarmByDigest(b *testing.B) {
	h := newEnv(b, registrytest.Options{})
	image := h.Build("app", "v1", "warm")
	must(0, legacy(h, image))(b)
	g := h.gate(b, signedBy(h.key))
	request := must(gate.ForImage(image.ByDigest(), "default"))(b)
	if g.Decide(b.Context(), request).Result != gate.Allow {
		b.Fatal("the image is not allowed")
	}
	b.ReportAllocs()
	for b.Loop() {
		g.Decide(b.Context(), request)
	}
}

// BenchmarkCold measures a first proof with 20 ms to the registry: of one image
// and of eight.
func BenchmarkCold(b *testing.B) {
	for _, images := range []int{1, 8} {
		b.Run(fmt.Sprintf("images=%d", images), func(b *testing.B) {
			h := newEnv(b, registrytest.Options{Delay: 20 * time.Millisecond})
			var names []string
			for i := range images {
				image := h.Build(fmt.Sprintf("app%d", i), "v1", fmt.Sprint(i))
				must(0, legacy(h, image))(b)
				names = append(names, image.Name)
			}
			request := pod(b, names...)
			h.Registry.Reset()
			for b.Loop() {
				if h.gate(b, signedBy(h.key)).Decide(b.Context(), request).Result != gate.Allow {
					b.Fatal("not allowed")
				}
			}
			b.ReportMetric(float64(len(h.Registry.Requests()))/float64(b.N), "requests/op")
		})
	}
}
