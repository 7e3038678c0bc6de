package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestBrokenMirror: a broken mirror that was created while the webhook was away is reported,
// and breaks no other.
func TestBrokenMirror(t *testing.T) {
	m := &mirrored{scene: unguarded(t, "broken-mirror")}
	m.near, m.far = openEnv(t, registrytest.Options{}), openEnv(t, registrytest.Options{})
	m.endLead(t)
	client, err := dynamic.NewForConfig(m.plane.Admin())
	must(t, err, m.plane.ApplyYAML(t.Context(), crooked), m.plane.ApplyYAML(t.Context(), document(t, "straight", m.entry("", nil))))
	t.Cleanup(func() {
		for _, name := range []string{"crooked", "straight"} {
			_ = client.Resource(registryMirrors).Delete(context.WithoutCancel(t.Context()), name, meta.DeleteOptions{})
		}
	})
	c := gateway.Configuration{}
	c.PlainHTTP(m.near.Registry.Host(), m.far.Registry.Host())
	m.gateway = m.start(t, c)
	must(t, m.gateway.Ready(t.Context()))
	m.enforceMirrored(t, env.Policy{Name: "broken-mirror", Namespaces: []string{m.namespace}})
	m.isRedirected(t, m.near)
	bare := m.env.Unsigned("shop/bare", "1.0")
	_, err = m.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "an unsigned image beside a broken mirror", err, "unsigned")

	const field = "spec.mirrors[0].targets[1].locatoin"
	eventually(t, func(ctx context.Context) error {
		return errors.Join(m.isReady(ctx, "crooked", "False", field), m.isReady(ctx, "straight", "True", ""))
	})
	eventually(t, func(ctx context.Context) error {
		events, err := m.eventsIn(ctx, meta.NamespaceDefault)
		for _, e := range events {
			if e.Regarding.Name == "crooked" && e.Reason == "MirrorError" && strings.Contains(e.Note, field) {
				return nil
			}
		}
		return fmt.Errorf("no event names the field among %v (%w)", events, err)
	})
	samples, err := m.gateway.Metrics(t.Context())
	must(t, err)
	for state, want := range map[string]float64{"active": 1, "broken": 1} {
		if got := gateway.Sum(samples, "quaymaster_mirrors", "state", state); got != want {
			t.Errorf("the metrics say that %v mirrors are %s, want %v", got, state, want)
		}
	}
	m.reflect(t, func(ctx context.Context) error {
		return m.plane.ApplyYAML(ctx, strings.Replace(crooked, "locatoin", "location", 1))
	})
	eventually(t, func(ctx context.Context) error { return m.isReady(ctx, "crooked", "True", "") })
}

// isReady returns an error if the status of a RegistryMirror does not say that it is
// ready, or not, and why.
func (m *mirrored) isReady(ctx context.Context, name, ready, why string) error {
	client, err := dynamic.NewForConfig(m.plane.Admin())
	if err != nil {
		return err
	}
	got, err := client.Resource(registryMirrors).Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if message, _ := condition["message"].(string); condition["type"] == "Ready" && condition["status"] == ready && strings.Contains(message, why) {
			return nil
		}
	}
	return fmt.Errorf("the status of %s is %v, want Ready %s for %q", name, conditions, ready, why)
}

// TestMirrorDenialIsAnEvent: a denial by a mapping is an event in the namespace, as a denial
// by a policy is.
func TestMirrorDenialIsAnEvent(t *testing.T) {
	m := mirror(t, "mirror-event", gateway.Configuration{})
	m.enforceMirrored(t, env.Policy{Name: "mirror-event", Namespaces: []string{m.namespace}})
	m.redirectBy(t, document(t, "mirror-event", m.entry("", map[string]any{"otherwise": "Deny"})))
	m.isRedirected(t, m.near)
	absent, bare := m.copied(t, "shop/absent", "1.0"), m.env.Unsigned("shop/bare", "1.0")
	m.copyTo(t, bare, "shop/bare", "1.0", m.near)
	_, err := m.create(t, pod("absent", absent.Name))
	denied(t, "a signed image that no target has", err, "no-mirror")
	// Events are written in the order in which they are recorded.
	_, err = m.create(t, pod("bare", bare.Name))
	denied(t, "an unsigned image", err, "unsigned")
	notes := map[string]string{}
	eventually(t, func(ctx context.Context) error {
		events, err := m.eventsIn(ctx, m.namespace)
		for _, e := range events {
			notes[e.Regarding.Name] = e.Note
		}
		if err == nil && notes["bare"] == "" {
			err = fmt.Errorf("no event about the unsigned image among %d", len(events))
		}
		return err
	})
	if !strings.Contains(notes["absent"], "no-mirror") {
		t.Errorf("the events are %v, want one about the image that no target has", notes)
	}
}

// TestOutdatedMirror: where a broken version is not refused, the one before it stays in
// force: without it copies would be matched by fewer names.
func TestOutdatedMirror(t *testing.T) {
	c := gateway.Configuration{}
	c.Webhooks.Disabled, c.Certificate.Names = true, []string{"127.0.0.1"}
	m := mirror(t, "outdated", c)
	m.enforceMirrored(t, env.Policy{Name: "outdated", Namespaces: []string{m.namespace}})
	text := document(t, "outdated", m.entry("", nil))
	m.redirectBy(t, text)
	signed, bare := m.copied(t, "shop/web", "1.0", m.near), m.env.Unsigned("shop/bare", "1.0")
	m.copyTo(t, bare, "shop/bare", "1.0", m.near)
	check := func(version string) {
		t.Helper()
		endpoint := m.caller(t, m.gateway)
		said, err := endpoint.ask(t.Context(), "/mutate", m.reviewOf(pod("web", signed.Name), "ann"))
		must(t, err)
		if got, err := pinned(pod("web", signed.Name), said.Patch); err != nil || images(got)[0] != exact(m.near, signed) {
			t.Errorf("%s: %v, %v, want that it is redirected", version, got, err)
		}
		said, err = endpoint.ask(t.Context(), "/validate", m.reviewOf(pod("bare", exact(m.near, bare)), "ann"))
		if err != nil || said.Allowed || !strings.Contains(said.Result.Message, "[unsigned]") {
			t.Errorf("%s: the copy of an unsigned image: %+v, %v", version, said, err)
		}
	}
	check("as it was")
	must(t, m.plane.ApplyYAML(t.Context(), strings.Replace(text, "location:", "locatoin:", 1)))
	eventually(t, func(ctx context.Context) error {
		return m.isReady(ctx, "outdated", "False", "the version before it is used")
	})
	check("outdated")
	samples, err := m.gateway.Metrics(t.Context())
	must(t, err)
	if gateway.Sum(samples, "quaymaster_mirrors", "state", "outdated") != 1 || gateway.Sum(samples, "quaymaster_mirror_broken", "mirror", "RegistryMirror/outdated") != 1 {
		t.Error("the metrics do not count the outdated mirror")
	}
	must(t, m.plane.ApplyYAML(t.Context(), text))
	eventually(t, func(ctx context.Context) error { return m.isReady(ctx, "outdated", "True", "") })
	check("corrected")
}
