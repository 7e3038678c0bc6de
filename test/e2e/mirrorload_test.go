package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestMirrorsUnderLoad: while targets come and go and mappings change, every signed
// image runs under one of its right names, and no unsigned one does.
func TestMirrorsUnderLoad(t *testing.T) {
	c := gateway.Configuration{}
	c.Ages.Tag, c.Ages.Mirror = "1ms", "1ms" // no memory makes anything here easy
	m := mirror(t, "mirror-load", c)
	m.enforceMirrored(t, env.Policy{Name: "mirror-load", Namespaces: []string{m.namespace}})
	// A refusal must not wait for an unresponsive target.
	evidence := map[string]any{"evidence": []any{"Source"}}
	m.redirectBy(t, document(t, "mirror-load", m.entry("", evidence)))
	m.isRedirected(t, m.near)
	var signed [4]gatetest.Image
	for i := range signed {
		signed[i] = m.copied(t, fmt.Sprint("shop/load-", i), "1.0", m.near, m.far)
	}
	bare := m.env.Unsigned("shop/bare", "1.0")
	m.copyTo(t, bare, "shop/bare", "1.0", m.near, m.far)

	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	var asked atomic.Int64
	var names [3]atomic.Int64
	for user := range users {
		asking.Go(func() {
			for i := user; ctx.Err() == nil; i++ {
				image := signed[i%len(signed)]
				got, err := m.dryRun(t.Context(), pod("load", image.Name))
				if err != nil {
					t.Errorf("a signed image: %v", err)
					return
				}
				which := slices.Index([]string{exact(m.near, image), exact(m.far, image), env.Pinned(image)}, images(got)[0])
				if which < 0 {
					t.Errorf("a signed image became %v", images(got))
					return
				}
				names[which].Add(1)
				if _, err := m.dryRun(t.Context(), pod("load", bare.Name)); err == nil || !strings.Contains(err.Error(), "[unsigned]") {
					t.Errorf("an unsigned image: %v", err)
					return
				}
				asked.Add(1)
			}
		})
	}
	more := func() {
		target := asked.Load() + 30
		eventually(t, func(context.Context) error {
			if asked.Load() < target && !t.Failed() {
				return errTooFew
			}
			return nil
		})
	}
	more()
	m.near.Registry.SetFaults(registrytest.Fault{Do: registrytest.Hang()})
	more()
	m.far.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(500)})
	more()
	m.far.Registry.SetFaults()
	m.reflect(t, func(ctx context.Context) error {
		return m.plane.ApplyYAML(ctx, document(t, "mirror-load", m.entry("", map[string]any{
			"evidence": evidence["evidence"], "targets": []any{m.at(m.far), m.at(m.near)},
		})))
	})
	more()
	m.near.Registry.SetFaults()
	m.reflect(t, func(ctx context.Context) error {
		return m.plane.ApplyYAML(ctx, document(t, "mirror-load", m.entry("", evidence)))
	})
	more()
	stop()
	asking.Wait()
	_, err := m.dryRun(t.Context(), pod("load", tagged(m.far, bare)))
	denied(t, "the copy of an unsigned image", err, "unsigned")
	for i, where := range []string{"at the first target", "at the second", "at the source"} {
		if names[i].Load() == 0 {
			t.Errorf("no image was pulled %s: the test shows nothing", where)
		}
	}
}
