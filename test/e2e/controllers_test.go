package e2e

import (
	"context"
	"errors"
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestRedirectControllers: where a cluster's owner wants it, templates are redirected
// as pods are, and their pods are left as they come.
func TestRedirectControllers(t *testing.T) {
	c := gateway.Configuration{}
	c.Webhooks.MutateControllers = []string{"Deployment"}
	m := mirror(t, "redirect-controllers", c)
	m.enforceMirrored(t, env.Policy{Name: "redirect-controllers", Namespaces: []string{m.namespace}})
	m.redirectBy(t, document(t, "redirect-controllers", m.entry("", nil)))
	m.isRedirected(t, m.near)
	signed, bare := m.copied(t, "shop/web", "1.0", m.near), m.env.Unsigned("shop/bare", "1.0")
	m.copyTo(t, bare, "shop/bare", "1.0", m.near)
	labels := map[string]string{"app": "controlled"}
	deployment := func(name, image string) *apps.Deployment {
		d := &apps.Deployment{ObjectMeta: meta.ObjectMeta{Name: name}}
		d.Spec.Selector = &meta.LabelSelector{MatchLabels: labels}
		d.Spec.Template = core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: pod("", image).Spec}
		return d
	}
	deployments := m.client.AppsV1().Deployments(m.namespace)
	_, err := deployments.Create(t.Context(), deployment("bare", bare.Name), meta.CreateOptions{})
	denied(t, "a Deployment of an unsigned image", err, "unsigned")
	got, err := deployments.Create(t.Context(), deployment("web", signed.Name), meta.CreateOptions{})
	must(t, err)
	if image := got.Spec.Template.Spec.Containers[0].Image; image != exact(m.near, signed) {
		t.Errorf("the template has %s, want %s", image, exact(m.near, signed))
	}
	eventually(t, func(ctx context.Context) error {
		list, err := m.client.CoreV1().Pods(m.namespace).List(ctx, meta.ListOptions{LabelSelector: "app=controlled"})
		if err != nil || len(list.Items) == 0 {
			return errors.Join(err, errNotYet)
		}
		if !slices.Equal(images(&list.Items[0]), []string{exact(m.near, signed)}) {
			t.Errorf("its pod has %v", images(&list.Items[0]))
		}
		return nil
	})
}
