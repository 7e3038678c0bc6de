package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// targetTime is how long one target is waited for at most, and brisk the limit of a cold
// image, on a busy machine, without a wait for an unresponsive target.
const targetTime, brisk = 2 * time.Second, time.Second

// TestFailover: a target that does not answer costs its time once; then the next
// one serves at once, until a probe finds the first again.
func TestFailover(t *testing.T) {
	m := mirror(t, "failover", gateway.Configuration{})
	m.redirectBy(t, document(t, "failover", m.entry("", nil)))
	m.enforceMirrored(t, env.Policy{Name: "failover", Namespaces: []string{m.namespace}})
	m.isRedirected(t, m.near)
	m.awaitTargets(t, "failover", "answering", "")
	const cold = 6
	for _, row := range []struct {
		reason string
		do     registrytest.Action
		probed bool // before it rests
	}{
		{"it hangs", registrytest.Hang(), false},
		{"it breaks off", breakOff, false},
		{"it has an internal error", registrytest.Status(500), true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			var names []string
			for i := range cold {
				repository := fmt.Sprint("shop/", strings.ReplaceAll(row.reason, " ", "-"), i)
				names = append(names, m.copied(t, repository, "1.0", m.near, m.far).Name)
			}
			m.near.Registry.SetFaults(registrytest.Fault{Do: row.do})
			defer m.near.Registry.SetFaults()
			m.forget()
			var asked int
			for i, name := range names {
				began := time.Now()
				got, err := m.dryRun(t.Context(), pod("cold", name))
				took := time.Since(began)
				must(t, err)
				if image := images(got)[0]; !strings.HasPrefix(image, m.far.Registry.Host()+"/"+hub+"/shop/") || !strings.Contains(image, "@sha256:") {
					t.Errorf("pod %d has %s, want the second target's", i, image)
				}
				limit := brisk
				if i == 0 {
					limit += targetTime
				}
				if took > limit {
					t.Errorf("pod %d took %s, want at most %s", i, took, limit)
				}
				switch n := m.near.Registry.Count("", registrytest.Manifest); {
				case i == 0 && n == 0:
					t.Error("the first target was not asked at all")
				case i == 0:
					asked = n // with retries within its time
					if row.probed {
						m.awaitTargets(t, "failover", "resting", "answering")
					}
				case n != asked:
					t.Errorf("pod %d: the first target was asked %d times, want no more than the %d for the first pod", i, n, asked)
				}
			}
			if n := m.far.Registry.Count("", registrytest.Manifest); n < cold {
				t.Errorf("the second target was asked %d times for %d images", n, cold)
			}
			m.awaitTargets(t, "failover", "resting", "answering")

			m.near.Registry.SetFaults()
			back := 0
			eventually(t, func(ctx context.Context) error { // a probe, beside requests
				back++
				image := m.copied(t, fmt.Sprint("shop/", strings.ReplaceAll(row.reason, " ", "-"), "-back", back), "1.0", m.near, m.far)
				got, err := m.dryRun(ctx, pod("back", image.Name))
				if err == nil && images(got)[0] != exact(m.near, image) {
					err = errNotYet
				}
				return err
			})
			if n := m.near.Registry.Count("", registrytest.Ping); n == 0 {
				t.Error("no probe found it: some request did")
			}
			m.awaitTargets(t, "failover", "answering", "answering")
		})
	}

	t.Run("the listener is closed", func(t *testing.T) {
		image, bare := m.copied(t, "shop/closed", "1.0", m.near, m.far), m.env.Unsigned("shop/closed-bare", "1.0")
		m.copyTo(t, bare, "shop/closed-bare", "1.0", m.near, m.far)
		m.near.Close()
		got, err := m.create(t, pod("closed", image.Name))
		must(t, err)
		if !slices.Equal(images(got), []string{exact(m.far, image)}) {
			t.Errorf("images %v, want the second target's", images(got))
		}
		_, err = m.create(t, pod("closed-bare", bare.Name))
		unverified(t, "an unsigned image, with a possible signature at an unresponsive target", err)
		m.far.Close()
		other := m.copied(t, "shop/all-closed", "1.0")
		heard, said := m.heard(t)
		got, err = heard.dryRun(t.Context(), pod("all-closed", other.Name))
		must(t, err)
		if !slices.Equal(images(got), []string{env.Pinned(other)}) {
			t.Errorf("images %v, want that it stays at its source", images(got))
		}
		if warnings := said(); !strings.Contains(warnings, "it stays at "+m.env.Registry.Host()) {
			t.Errorf("the warning is %q", warnings)
		}
	})
}

// awaitTargets waits until the status of a RegistryMirror has these states of its two
// targets; empty is any.
func (m *mirrored) awaitTargets(t *testing.T, name, near, far string) {
	t.Helper()
	client, err := dynamic.NewForConfig(m.plane.Admin())
	must(t, err)
	want := map[string]string{m.near.Registry.Host(): near, m.far.Registry.Host(): far}
	eventually(t, func(ctx context.Context) error {
		got, err := client.Resource(registryMirrors).Get(ctx, name, meta.GetOptions{})
		if err != nil {
			return err
		}
		targets, _, _ := unstructured.NestedSlice(got.Object, "status", "targets")
		said := map[string]string{}
		for _, item := range targets {
			target, _ := item.(map[string]any)
			said[fmt.Sprint(target["registry"])] = fmt.Sprint(target["state"])
		}
		for registry, state := range want {
			if said[registry] == "" || state != "" && said[registry] != state {
				return fmt.Errorf("the status is %v, want %v", targets, want)
			}
		}
		return nil
	})
}
