package e2e

import (
	"context"
	"errors"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

var errNotYet = errors.New("not yet")

// leads reports whether a replica is the leader, by its log.
func leads(g *gateway.Gateway) error {
	lines, err := g.Lines()
	for _, line := range lines {
		if line["msg"] == "this replica leads" {
			return nil
		}
	}
	return errors.Join(errNotYet, err)
}

// TestLeader: the webhook configurations are kept by one replica, by another when
// that is gone, and go away with the release.
func TestLeader(t *testing.T) {
	s := unguarded(t, "leader")
	first := s.freshStart(t, gateway.Configuration{})
	must(t, first.Ready(t.Context()))
	s.gateway = first
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	bare := s.env.Unsigned("shop/bare", "1.0")
	// The second one answers at its own address only once it leads.
	second := s.start(t, gateway.Configuration{})
	must(t, second.Ready(t.Context()), first.Await(t.Context(), func(context.Context) error { return leads(first) }))

	t.Run("another one takes over from one that is killed, and repairs the configuration", func(t *testing.T) {
		if leads(second) == nil {
			t.Error("two lead")
		}
		first.Kill()
		registered := s.client.AdmissionregistrationV1()
		must(t, registered.MutatingWebhookConfigurations().Delete(t.Context(), ownName, meta.DeleteOptions{}))
		kept, err := registered.ValidatingWebhookConfigurations().Get(t.Context(), ownName, meta.GetOptions{})
		must(t, err)
		kept.Webhooks = nil
		_, err = registered.ValidatingWebhookConfigurations().Update(t.Context(), kept, meta.UpdateOptions{})
		must(t, err)
		s.awaitConfigurations(t, second)
		must(t, leads(second))
		s.awaitRefused(t, bare.Name, "[unsigned]")
	})

	t.Run("the configurations stay without a replica, and go with the ClusterRole", func(t *testing.T) {
		second.Kill()
		s.awaitConfigurations(t, second)
		must(t, s.client.RbacV1().ClusterRoles().Delete(t.Context(), ownName, meta.DeleteOptions{}))
		registered := s.client.AdmissionregistrationV1()
		eventually(t, func(ctx context.Context) error {
			_, validating := registered.ValidatingWebhookConfigurations().Get(ctx, ownName, meta.GetOptions{})
			_, mutating := registered.MutatingWebhookConfigurations().Get(ctx, ownName, meta.GetOptions{})
			return errors.Join(gone(validating), gone(mutating))
		})
		_, err := s.plane.Install(t.Context()) // others need it
		must(t, err)
	})
}

// awaitConfigurations waits until both are there, with webhooks that call g.
func (s *scene) awaitConfigurations(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	registered := s.client.AdmissionregistrationV1()
	base := g.Configuration.Webhooks.URL
	eventually(t, func(ctx context.Context) error {
		validating, err := registered.ValidatingWebhookConfigurations().Get(ctx, ownName, meta.GetOptions{})
		if err != nil {
			return err
		}
		mutating, err := registered.MutatingWebhookConfigurations().Get(ctx, ownName, meta.GetOptions{})
		if err != nil {
			return err
		}
		if len(mutating.Webhooks) == 0 || *mutating.Webhooks[0].ClientConfig.URL != base+"/mutate" {
			return errNotYet
		}
		for _, webhook := range validating.Webhooks {
			if *webhook.ClientConfig.URL == base+"/validate" {
				return nil
			}
		}
		return errNotYet
	})
}
