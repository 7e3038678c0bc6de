package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestMirrorChanges: mirrors are the cluster's, heeded by the next request, refused
// if they are broken, and asked about without any policy.
func TestMirrorChanges(t *testing.T) {
	m := mirror(t, "mirror-changes", gateway.Configuration{})
	t.Run("a broken one does not get in", m.tryBrokenMirror)
	t.Run("without a policy", m.tryAlone)
	t.Run("a change counts from the next request on", m.tryMirrorChanges)
}

const crooked = `
apiVersion: quaymaster.dev/v1alpha1
kind: RegistryMirror
metadata: {name: crooked}
spec:
  mirrors:
    - sources: [registry.example]
      targets: [{location: near.example/hub}, {locatoin: far.example/hub}]
`

func (m *mirrored) tryBrokenMirror(t *testing.T) {
	kubectl := m.kubectl(t)
	file := t.TempDir() + "/mirror.yaml"
	for _, row := range []struct{ reason, old, new, says string }{
		{"a field that there is not", "", "", "spec.mirrors[0].targets[1]"},
		{"a location that is none", "locatoin: far.example/hub", "location: far.example/hub/", "spec.mirrors[0].targets[1]"},
		{"a mapping that cannot be inverted", "locatoin: far.example/hub", "location: far.example/hub, template: fixed", "spec.mirrors[0].targets[1]"},
		{"a choice that there is not", "locatoin: far.example/hub}]", "location: far.example/hub}]\n      when: Sometimes", "spec.mirrors[0].when"},
	} {
		must(t, os.WriteFile(file, []byte(strings.Replace(crooked, row.old, row.new, 1)), 0o600))
		said, err := kubectl("apply", "-f", file)
		// The API server itself refuses a value that the schema does not list.
		named := strings.Contains(said, "RegistryMirror crooked") || strings.Contains(said, `RegistryMirror "crooked"`)
		if err == nil || !named || !strings.Contains(said, row.says) {
			t.Errorf("%s: kubectl apply prints %q (%v), want %q", row.reason, said, err, row.says)
		}
	}
	must(t, os.WriteFile(file, []byte(strings.Replace(crooked, "locatoin", "location", 1)), 0o600))
	m.reflect(t, func(context.Context) error {
		said, err := kubectl("apply", "-f", file)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return err
	})
	client, err := dynamic.NewForConfig(m.plane.Admin())
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		got, err := client.Resource(registryMirrors).Get(ctx, "crooked", meta.GetOptions{})
		if err != nil {
			return err
		}
		targets, _, _ := unstructured.NestedSlice(got.Object, "status", "targets")
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		if text := fmt.Sprint(conditions); len(targets) != 2 || !strings.Contains(text, "status:True") || !strings.Contains(text, "Ready") {
			return fmt.Errorf("the status has conditions %v and targets %v", conditions, targets)
		}
		return nil
	})
	m.reflect(t, func(ctx context.Context) error {
		return client.Resource(registryMirrors).Delete(ctx, "crooked", meta.DeleteOptions{})
	})
	m.unasked(t)
}

// unasked waits until no webhook for pods is registered: that follows a change of mirrors,
// and would else undo the effect of the next change.
func (m *mirrored) unasked(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		guards, err := m.guards(ctx)
		if apierrors.IsNotFound(err) || err == nil && len(guards) == 0 {
			return nil
		}
		return fmt.Errorf("no pod is evaluated any more, and the webhooks are %v (%w)", called(guards), err)
	})
}

// tryAlone: no policy matches any image, so that pods are evaluated because of mirrors alone.
func (m *mirrored) tryAlone(t *testing.T) {
	image, absent := m.env.Unsigned("shop/alone", "1.0"), m.env.Unsigned("shop/absent", "1.0")
	m.copyTo(t, image, "shop/alone", "1.0", m.near)
	got, err := m.dryRun(t.Context(), pod("before", image.Name))
	must(t, err)
	if images(got)[0] != image.Name {
		t.Fatalf("without mirrors and policies it became %v", images(got))
	}
	m.redirectBy(t, document(t, "alone", m.entry("", map[string]any{"when": "Present"})))
	eventually(t, func(ctx context.Context) error { // the API server watches its webhook configurations
		got, err := m.dryRun(ctx, pod("alone", image.Name))
		if err == nil && images(got)[0] != exact(m.near, image) {
			err = fmt.Errorf("images %v, want %s", images(got), exact(m.near, image))
		}
		return err
	})
	guards, err := m.guards(t.Context())
	must(t, err)
	if len(guards) != 1 || *guards[0].FailurePolicy != "Ignore" {
		t.Errorf("the webhooks are %v, want one that stops no pod", called(guards))
	}
	heard, said := m.heard(t)
	eventually(t, func(ctx context.Context) error { // nor does it see its configuration in one step
		got, err := heard.dryRun(ctx, pod("absent", absent.Name))
		if err != nil {
			return err
		}
		if name := images(got)[0]; !strings.HasPrefix(name, m.env.Registry.Host()) || !strings.Contains(said(), "it stays at") {
			return fmt.Errorf("an image that no target has became %s, with the words %q", name, said())
		}
		return nil
	})

	m.reflect(t, func(ctx context.Context) error {
		return m.plane.ApplyYAML(ctx, document(t, "alone", m.entry("", map[string]any{"when": "Present", "otherwise": "Deny"})))
	})
	_, err = m.dryRun(t.Context(), pod("absent", absent.Name))
	denied(t, "an image that no target has, where the mapping denies", err, "no-mirror")
	eventually(t, func(ctx context.Context) error {
		guards, err := m.guards(ctx)
		if err == nil && (len(guards) != 1 || *guards[0].FailurePolicy != "Fail") {
			err = fmt.Errorf("the webhooks are %v, want one that fails", called(guards))
		}
		return err
	})
	client, err := dynamic.NewForConfig(m.plane.Admin())
	must(t, err)
	m.reflect(t, func(ctx context.Context) error {
		return client.Resource(registryMirrors).Delete(ctx, "alone", meta.DeleteOptions{})
	})
	got, err = m.dryRun(t.Context(), pod("after", image.Name))
	must(t, err)
	if images(got)[0] != image.Name {
		t.Errorf("without mirrors it became %v", images(got))
	}
	m.unasked(t)
}

// tryMirrorChanges asks once after each change, without a second try.
func (m *mirrored) tryMirrorChanges(t *testing.T) {
	m.enforceMirrored(t, env.Policy{Name: "mirror-changes", Namespaces: []string{m.namespace}})
	m.redirectBy(t, document(t, "changing", m.entry("", nil)))
	m.isRedirected(t, m.near)
	image, bare := m.copied(t, "shop/changing", "1.0", m.near, m.far), m.env.Unsigned("shop/unchanged", "1.0")
	client, err := dynamic.NewForConfig(m.plane.Admin())
	must(t, err)
	write := func(more map[string]any) func(context.Context) error {
		return func(ctx context.Context) error {
			return m.plane.ApplyYAML(ctx, document(t, "changing", m.entry("", more)))
		}
	}
	for _, row := range []struct {
		reason  string
		change  func(context.Context) error
		becomes string
	}{
		{"as it was", nil, exact(m.near, image)},
		{"the other order", write(map[string]any{"targets": []any{m.at(m.far), m.at(m.near)}}), exact(m.far, image)},
		{"the first order again", write(nil), exact(m.near, image)},
		{"another source", write(map[string]any{"sources": []any{m.env.Registry.Host() + "/elsewhere"}}), env.Pinned(image)},
		{"the first source again", write(nil), exact(m.near, image)},
		{"it is gone", func(ctx context.Context) error {
			return client.Resource(registryMirrors).Delete(ctx, "changing", meta.DeleteOptions{})
		}, env.Pinned(image)},
	} {
		if row.change != nil {
			m.reflect(t, row.change)
		}
		got, err := m.dryRun(t.Context(), pod("changing", image.Name))
		must(t, err)
		if !slices.Equal(images(got), []string{row.becomes}) {
			t.Errorf("%s: images %v, want %s", row.reason, images(got), row.becomes)
		}
		_, err = m.dryRun(t.Context(), pod("unchanged", bare.Name))
		denied(t, row.reason+": an unsigned image", err, "unsigned")
	}
}
