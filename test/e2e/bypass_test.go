package e2e

import (
	"context"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestBypassedMutation: removing the mutating webhook admits no unsigned image.
func TestBypassedMutation(t *testing.T) {
	s := unguarded(t, "bypass")
	s.gateway = s.freshStart(t, gateway.Configuration{Listen: gateway.Listen{DrainDelay: "100ms"}})
	must(t, s.gateway.Ready(t.Context()))
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	tags := s.in(t, "bypass-tags")
	text, err := s.env.YAML(env.Policy{
		Name: tags.namespace, Namespaces: []string{tags.namespace}, Rule: map[string]any{"mutateDigest": false, "verifyDigest": false},
	})
	must(t, err)
	s.put(t, text)
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	s.awaitGuard(t, tags, bare.Name, true)
	s.onlyValidate(t)
	tags.gateway = s.gateway

	eventually(t, func(ctx context.Context) error { // until the API server calls the copy alone
		got, err := tags.dryRun(ctx, pod("probe", signed.Name))
		if err == nil && images(got)[0] != signed.Name {
			return errNotYet
		}
		if err == nil {
			if _, err := tags.dryRun(ctx, pod("probe", bare.Name)); err == nil {
				return errAdmitted
			}
		}
		return err
	})

	for _, row := range []struct{ reason, image, code string }{
		{"signed, by digest", signed.ByDigest(), ""},
		{"signed, by tag and digest", env.Pinned(signed), ""},
		{"signed, by tag, not pinned", signed.Name, "missing-digest"},
		{"unsigned, by tag", bare.Name, "missing-digest"},
		{"unsigned, by digest", bare.ByDigest(), "unsigned"},
	} {
		_, err := s.dryRun(t.Context(), pod("bypassed", row.image))
		switch {
		case row.code != "":
			denied(t, row.reason, err, row.code)
		case err != nil:
			t.Errorf("%s: %v", row.reason, err)
		}
	}

	got, err := tags.create(t, pod("tagged", signed.Name))
	must(t, err)
	if images(got)[0] != signed.Name {
		t.Errorf("a gateway that does not pin pinned %v", images(got))
	}
	_, err = tags.create(t, pod("bare", bare.Name))
	denied(t, "an unsigned image where nothing is pinned", err, "unsigned")
}

// onlyValidate runs the gateway on without configurations of its own, and has
// the API server call /validate alone.
func (s *scene) onlyValidate(t *testing.T) {
	t.Helper()
	registered := s.client.AdmissionregistrationV1()
	kept, err := registered.ValidatingWebhookConfigurations().Get(t.Context(), ownName, meta.GetOptions{})
	must(t, err)
	must(t, s.gateway.Terminate())
	<-s.gateway.Done()
	must(t, registered.MutatingWebhookConfigurations().Delete(t.Context(), ownName, meta.DeleteOptions{}),
		registered.ValidatingWebhookConfigurations().Delete(t.Context(), ownName, meta.DeleteOptions{}))
	c := s.gateway.Configuration
	c.Certificate.Names = []string{"127.0.0.1"}
	c.Webhooks = gateway.Webhooks{Disabled: true}
	s.gateway = s.freshStart(t, c)
	must(t, s.gateway.Ready(t.Context()))
	const name = "e2e-only-validate"
	only := &admission.ValidatingWebhookConfiguration{ObjectMeta: meta.ObjectMeta{Name: name}, Webhooks: kept.Webhooks}
	_, err = registered.ValidatingWebhookConfigurations().Create(t.Context(), only, meta.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		_ = registered.ValidatingWebhookConfigurations().Delete(context.WithoutCancel(t.Context()), name, meta.DeleteOptions{})
	})
}
