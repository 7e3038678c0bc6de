package gate_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// sharing opens sessions in the name of the namespace.
type sharing struct{ *env }

func (o sharing) Open(_ context.Context, access gate.Access, _ image.Repository) (gate.Session, error) {
	meter := &registry.Meter{}
	return session{Client: o.client.For(registry.Caller{Tenant: cmp.Or(access.Workload.Namespace, "(none)")}, meter), meter: meter}, nil
}

// in returns a request for a pod of a namespace.
func in(t testing.TB, namespace string, images ...string) gate.Request {
	t.Helper()
	request := pod(t, images...)
	request.Subject.Namespace = namespace
	return request
}

// tarpit hangs, and signals each request.
func tarpit(arrived chan<- struct{}) registrytest.Fault {
	return registrytest.Fault{Repository: "greedy/app", Do: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if arrived != nil {
				arrived <- struct{}{}
			}
			registrytest.Hang()(next).ServeHTTP(w, q)
		})
	}}
}

// TestTenantsDoNotWaitForEachOther: a tenant that has its share of a registry asks for an image,
// and waits. Another tenant with the same request and credentials does not wait with it.
func TestTenantsDoNotWaitForEachOther(t *testing.T) {
	arrived := make(chan struct{}, 100)
	h := newEnv(t, registrytest.Options{Faults: []registrytest.Fault{tarpit(arrived)}})
	shared := h.Build("shared", "v1", "content")
	must(0, legacy(h, shared))(t)
	g := h.gateAt(t, sharing{h}, &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{signedBy(h.key)}})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 14 {
		all.Go(func() {
			image := fmt.Sprintf("%s/greedy/app:v%d", h.Registry.Host(), i)
			if got := g.Decide(ctx, in(t, "greedy", image)); got.Result == gate.Allow {
				t.Errorf("%s: allowed", image)
			}
		})
	}
	for range 14 {
		<-arrived
	}
	for range 20 { // the late ones share the calm tenant's result
		all.Go(func() { g.Decide(ctx, in(t, "greedy", shared.Name)) })
	}
	for range 20 {
		if got := g.Decide(t.Context(), in(t, "calm", shared.Name)); got.Result != gate.Allow {
			t.Fatalf("%s: %v", got.Result, got.Reasons)
		}
	}
	cancel()
	all.Wait()
}

// BenchmarkTenants is the duration of a decision in one namespace, alone and next to another one
// with a thousand images at registries that never answer.
func BenchmarkTenants(b *testing.B) {
	for _, memory := range []string{"warm", "cold"} {
		for _, images := range []int{0, 1000} {
			b.Run(fmt.Sprintf("%s/beside=%d", memory, images), func(b *testing.B) {
				h := newEnv(b, registrytest.Options{Delay: 20 * time.Millisecond})
				mine := h.Build("calm", "v1", "content")
				must(0, legacy(h, mine))(b)
				ages := gate.Ages{Tag: time.Hour, Fact: time.Hour}
				if memory == "cold" {
					ages = gate.Ages{Tag: 1, Fact: 1, None: 1}
				}
				g := h.gateAt(b, sharing{h}, &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{signedBy(h.key)}}, gate.WithAges(ages))
				ctx, cancel := context.WithCancel(b.Context())
				var all sync.WaitGroup
				for i := range images / 10 { // pods of ten images, made again when they are refused
					server := registrytest.Start(registrytest.Options{Faults: []registrytest.Fault{tarpit(nil)}})
					b.Cleanup(server.Close)
					var names []string
					for n := range 10 {
						names = append(names, fmt.Sprintf("%s/greedy/app:v%d-%d", server.Host(), i, n))
					}
					request := in(b, "greedy", names...)
					all.Go(func() {
						for ctx.Err() == nil {
							g.Decide(ctx, request)
						}
					})
				}
				request := in(b, "calm", mine.Name)
				var took []time.Duration
				for b.Loop() {
					begun := time.Now()
					if got := g.Decide(b.Context(), request); got.Result != gate.Allow {
						b.Fatal(got.Reasons)
					}
					took = append(took, time.Since(begun))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
				cancel()
				all.Wait()
			})
		}
	}
}
