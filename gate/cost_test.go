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

func TestSerialRoundsOfAColdProof(t *testing.T) {
	for _, c := range []struct {
		reason   string
		sign     func(*harbor, gatetest.Image) error
		rule     func(*harbor) policy.Rule
		byDigest bool
		rounds   int
		pulls    int // manifest GETs of the image itself would come on top
	}{
		{"legacy key by tag: tag, signature manifest, payload", legacy, byTheKey, false, 3, 1},
		{"legacy key by digest: signature manifest, payload", legacy, byTheKey, true, 2, 1},
		{"bundle by tag: tag, referrers, manifest, bundle", bundled, byTheKey, false, 4, 1},
		{"bundle by digest: referrers, manifest, bundle", bundled, byTheKey, true, 3, 1},
		{"notation by tag: tag, referrers, manifest, envelope", notarised, byTheNotary, false, 4, 1},
		{"notation by digest: referrers beside the descriptor, manifest, envelope", notarised, byTheNotary, true, 3, 1},
	} {
		t.Run(c.reason, func(t *testing.T) {
			h := newHarbor(t, registrytest.Options{Delay: settleTime})
			image := h.Build("app", "v1", c.reason)
			must(0, c.sign(h, image))(t)
			name := image.Name
			if c.byDigest {
				name = image.ByDigest()
			}
			h.Registry.Reset()
			outcome := decide(t, h.gate(t, c.rule(h)), name)
			if outcome.Answer != gate.Allow {
				t.Fatalf("%s: %+v", outcome.Answer, outcome.Verdicts)
			}
			if got := h.Registry.Rounds(); got > c.rounds {
				t.Errorf("%d serial rounds, at most %d are needed:\n%s", got, c.rounds, requests(h))
			}
			if got := h.Registry.Pulls(); got > c.pulls {
				t.Errorf("%d counted pulls, want at most %d:\n%s", got, c.pulls, requests(h))
			}
			if got := h.Registry.Count("", registrytest.Ping); got > 0 {
				t.Errorf("%d pings, none is needed", got)
			}
			if cost := outcome.Cost; int(cost.Requests) != len(h.Registry.Requests()) || int(cost.CountedPulls) != h.Registry.Pulls() {
				t.Errorf("the verdict says %+v, the registry saw %d requests and %d pulls", cost, len(h.Registry.Requests()), h.Registry.Pulls())
			}
		})
	}
}

func legacy(h *harbor, image gatetest.Image) error  { return h.SignLegacy(image, byKey(h.key), nil) }
func bundled(h *harbor, image gatetest.Image) error { return h.SignBundle(image, byKey(h.key), nil) }
func notarised(h *harbor, image gatetest.Image) error {
	return h.SignNotation(image, h.notary, verifytest.Notation{})
}
func byTheKey(h *harbor) policy.Rule    { return signedBy(h.key) }
func byTheNotary(h *harbor) policy.Rule { return notarized(h.notary) }

func requests(h *harbor) string {
	var b strings.Builder
	for _, r := range h.Registry.Requests() {
		fmt.Fprintln(&b, "  ", r)
	}
	return b.String()
}

func TestEightContainersOfOneImageCostOneProof(t *testing.T) {
	h := newHarbor(t, registrytest.Options{})
	image := h.Build("app", "v1", "one")
	must(0, legacy(h, image))(t)
	g := h.gate(t, signedBy(h.key))
	h.Registry.Reset()
	decide(t, h.gate(t, signedBy(h.key)), image.Name)
	alone := len(h.Registry.Requests())

	h.Registry.Reset()
	outcome := g.Decide(t.Context(), pod(t, image.Name, image.Name, image.Name, image.Name, image.Name, image.Name, image.Name, image.Name))
	if outcome.Answer != gate.Allow || len(outcome.Verdicts) != 8 {
		t.Fatalf("%s with %d verdicts: %+v", outcome.Answer, len(outcome.Verdicts), outcome.Reasons)
	}
	if got := len(h.Registry.Requests()); got != alone {
		t.Errorf("eight containers cost %d requests, one costs %d:\n%s", got, alone, requests(h))
	}
}

func TestEightImagesTakeNoMoreRoundsThanOne(t *testing.T) {
	h := newHarbor(t, registrytest.Options{Delay: settleTime})
	var names []string
	for i := range 8 {
		image := h.Build(fmt.Sprintf("app%d", i), "v1", fmt.Sprint(i))
		must(0, legacy(h, image))(t)
		names = append(names, image.Name)
	}
	h.Registry.Reset()
	outcome := h.gate(t, signedBy(h.key)).Decide(t.Context(), pod(t, names...))
	if outcome.Answer != gate.Allow {
		t.Fatalf("%s: %+v", outcome.Answer, outcome.Verdicts)
	}
	if got := h.Registry.Rounds(); got > 3 {
		t.Errorf("%d serial rounds for eight images, one takes 3:\n%s", got, requests(h))
	}
}

func TestAWarmProofByDigestAsksNobody(t *testing.T) {
	h := newHarbor(t, registrytest.Options{})
	image := h.Build("app", "v1", "warm")
	must(0, legacy(h, image))(t)
	g := h.gate(t, signedBy(h.key))
	decide(t, g, image.ByDigest())
	h.Registry.Reset()
	outcome := decide(t, g, image.ByDigest())
	if outcome.Answer != gate.Allow {
		t.Fatalf("%s: %+v", outcome.Answer, outcome.Verdicts)
	}
	if got := len(h.Registry.Requests()); got != 0 || outcome.Cost.Requests != 0 {
		t.Errorf("%d requests (the verdict says %d), want none:\n%s", got, outcome.Cost.Requests, requests(h))
	}
}

func BenchmarkWarmByDigest(b *testing.B) {
	h := newHarbor(b, registrytest.Options{})
	image := h.Build("app", "v1", "warm")
	must(0, legacy(h, image))(b)
	g := h.gate(b, signedBy(h.key))
	request := must(gate.ForImage(image.ByDigest(), "default"))(b)
	if g.Decide(b.Context(), request).Answer != gate.Allow {
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
			h := newHarbor(b, registrytest.Options{Delay: 20 * time.Millisecond})
			var names []string
			for i := range images {
				image := h.Build(fmt.Sprintf("app%d", i), "v1", fmt.Sprint(i))
				must(0, legacy(h, image))(b)
				names = append(names, image.Name)
			}
			request := pod(b, names...)
			h.Registry.Reset()
			for b.Loop() {
				if h.gate(b, signedBy(h.key)).Decide(b.Context(), request).Answer != gate.Allow {
					b.Fatal("not allowed")
				}
			}
			b.ReportMetric(float64(len(h.Registry.Requests()))/float64(b.N), "requests/op")
		})
	}
}
