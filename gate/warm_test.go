package gate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// BenchmarkWarm measures a pod that was proved a moment ago: by digest and by tag,
// with one container and with eight different images.
func BenchmarkWarm(b *testing.B) {
	for _, containers := range []int{1, 8} {
		for _, by := range []string{"digest", "tag"} {
			b.Run(fmt.Sprintf("containers=%d/by=%s", containers, by), func(b *testing.B) {
				h := newEnv(b, registrytest.Options{})
				var names []string
				for i := range containers {
					image := h.Build(fmt.Sprintf("app%d", i), "v1", fmt.Sprint(i))
					must(0, legacy(h, image))(b)
					name := image.Name
					if by == "digest" {
						name = image.ByDigest()
					}
					names = append(names, name)
				}
				g := h.gate(b, signedBy(h.key), gate.WithAges(gate.Ages{None: time.Hour, Tag: time.Hour}))
				measure(b, g, pod(b, names...))
			})
		}
	}
}

// BenchmarkUnchanged measures an update that leaves eight images alone.
func BenchmarkUnchanged(b *testing.B) {
	h := newEnv(b, registrytest.Options{})
	request := pod(b, "a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1", "h:1")
	request.Old = request.Object
	measure(b, h.gate(b, signedBy(h.key)), request)
}

// BenchmarkManyPolicies measures a thousand rules that ask the same of one image.
func BenchmarkManyPolicies(b *testing.B) {
	h := newEnv(b, registrytest.Options{})
	image := h.Build("app", "v1", "app")
	must(0, legacy(h, image))(b)
	p := &policy.Policy{Kind: "Test", Name: "test"}
	for i := range 1000 {
		p.Rules = append(p.Rules, numbered{signedBy(h.key), i})
	}
	measure(b, h.gateWith(b, p), pod(b, image.ByDigest()))
}

func measure(b *testing.B, g *gate.Gate, request gate.Request) {
	b.Helper()
	if outcome := g.Decide(b.Context(), request); outcome.Result != gate.Allow {
		b.Fatalf("not allowed: %+v", outcome)
	}
	b.ReportAllocs()
	for b.Loop() {
		g.Decide(b.Context(), request)
	}
}
