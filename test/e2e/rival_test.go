package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestRival: a second release in a cluster, which Helm could not see because the first had
// not written its webhook configurations yet, leaves them alone and logs the reason; once the
// first is gone, it makes its own.
func TestRival(t *testing.T) {
	const second = "rival-second"
	s := guard(t, "rival", gateway.Configuration{})
	s.enforce(t, env.Policy{Name: "rival", Namespaces: []string{"rival"}})
	bare := s.env.Unsigned("shop/bare", "1.0")
	roles := s.client.RbacV1().ClusterRoles()
	_, err := roles.Create(t.Context(), &rbac.ClusterRole{ObjectMeta: meta.ObjectMeta{Name: second}}, meta.CreateOptions{})
	must(t, err, s.plane.Namespace(t.Context(), second))
	t.Cleanup(func() { _ = roles.Delete(context.WithoutCancel(t.Context()), second, meta.DeleteOptions{}) })

	other := *s
	other.identity = s.plane.Admin()
	c := gateway.Configuration{Namespace: second}
	c.Webhooks.Owner = second
	other.gateway = other.start(t, c)
	must(t, other.gateway.Ready(t.Context()))
	eventually(t, func(context.Context) error {
		if !strings.Contains(other.gateway.Log(), "it belongs to another gateway (ClusterRole quaymaster)") {
			return errNotYet
		}
		return nil
	})
	must(t, s.owned(t.Context(), "quaymaster", s.gateway))
	_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "while two releases are there", err, "unsigned")

	// Uninstalled: with its ClusterRole goes what that owns.
	s.gateway.Kill()
	registered := s.client.AdmissionregistrationV1()
	must(t, registered.MutatingWebhookConfigurations().Delete(t.Context(), "quaymaster", meta.DeleteOptions{}),
		registered.ValidatingWebhookConfigurations().Delete(t.Context(), "quaymaster", meta.DeleteOptions{}))
	eventually(t, func(ctx context.Context) error { return s.owned(ctx, second, other.gateway) })
	s.awaitRefused(t, bare.Name, "[unsigned]")
}

// owned checks that both configurations have one owner, and call that gateway.
func (s *scene) owned(ctx context.Context, owner string, by *gateway.Gateway) error {
	registered := s.client.AdmissionregistrationV1()
	mutating, err := registered.MutatingWebhookConfigurations().Get(ctx, "quaymaster", meta.GetOptions{})
	if err != nil {
		return err
	}
	validating, err := registered.ValidatingWebhookConfigurations().Get(ctx, "quaymaster", meta.GetOptions{})
	if err != nil {
		return err
	}
	for _, owners := range [][]meta.OwnerReference{mutating.OwnerReferences, validating.OwnerReferences} {
		if len(owners) != 1 || owners[0].Name != owner {
			return fmt.Errorf("owned by %v, want %s", owners, owner)
		}
	}
	var errs []error
	for _, w := range validating.Webhooks {
		if url := *w.ClientConfig.URL; !strings.HasPrefix(url, by.Configuration.Webhooks.URL) {
			errs = append(errs, fmt.Errorf("%s calls %s, want %s", w.Name, url, by.Configuration.Webhooks.URL))
		}
	}
	return errors.Join(errs...)
}
