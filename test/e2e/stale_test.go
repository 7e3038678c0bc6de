package e2e

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestTheRegistryIsDown: while it is, verified images start, by tag, under their verified
// digest, also after a restart of all replicas; no others do, and none where the policy
// requires an answer.
func TestTheRegistryIsDown(t *testing.T) {
	s := unguarded(t, "stale")
	s.vacate(t)
	forgets := gateway.Configuration{Ages: gateway.Ages{Tag: "1ms", Fact: "1s", None: "1ms"}}
	forgets.Snapshot.Interval = "1s"
	s.gateway = s.start(t, forgets)
	must(t, s.gateway.Ready(t.Context()))
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	strict := s.in(t, "stale-strict")
	strict.apply(t, env.Policy{Name: strict.namespace, Namespaces: []string{strict.namespace}})
	must(t, s.plane.ApplyYAML(t.Context(), s.edited(t, env.Policy{Name: strict.namespace, Namespaces: []string{strict.namespace}},
		func(_, metadata map[string]any) {
			metadata["annotations"] = map[string]any{"quaymaster.dev/stale-if-error": "0s"}
		})))
	proved, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	later, err := s.env.Signed("shop/later", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	for _, guarded := range []*scene{s, strict} {
		got, err := guarded.dryRun(t.Context(), pod("web", proved.Name))
		if err != nil || images(got)[0] != env.Pinned(proved) {
			t.Fatalf("while the registry answers: %v", err)
		}
		_, err = guarded.dryRun(t.Context(), pod("bare", bare.Name))
		denied(t, "while the registry answers", err, "unsigned")
	}
	eventually(t, func(ctx context.Context) error {
		_, err := s.client.CoreV1().Secrets("quaymaster").Get(ctx, "quaymaster-snapshot-0", meta.GetOptions{})
		return err
	})
	s.env.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(http.StatusServiceUnavailable)})
	outage := func(t *testing.T) {
		open, said := s.heard(t)
		eventually(t, func(ctx context.Context) error { // the facts are young at first
			said()
			got, err := open.dryRun(ctx, pod("web", proved.Name))
			if err != nil {
				return err
			}
			if images(got)[0] != env.Pinned(proved) {
				t.Fatalf("pinned as %s", images(got)[0])
			}
			if !strings.Contains(said(), "[stale]") {
				return errors.New("there was no warning")
			}
			return nil
		})
		_, err := s.dryRun(t.Context(), pod("later", later.Name))
		unverified(t, "signed, and never looked at", err)
		if _, err := s.dryRun(t.Context(), pod("bare", bare.Name)); err == nil {
			t.Error("an unsigned image is admitted")
		}
		_, err = strict.dryRun(t.Context(), pod("web", proved.Name))
		unverified(t, "the policy wants an answer", err)
	}
	t.Run("the same process", outage)
	t.Run("all replicas start anew", func(t *testing.T) {
		must(t, s.gateway.Terminate())
		<-s.gateway.Done()
		s.gateway = s.start(t, s.gateway.Configuration)
		must(t, s.gateway.Ready(t.Context()))
		outage(t)
	})
	t.Run("the registry is back", func(t *testing.T) {
		s.env.Registry.SetFaults()
		open, said := s.heard(t)
		eventually(t, func(ctx context.Context) error {
			said()
			if _, err := open.dryRun(ctx, pod("web", proved.Name)); err != nil {
				return err
			}
			if strings.Contains(said(), "[stale]") {
				return errors.New("it is still not asked")
			}
			return nil
		})
	})
}
