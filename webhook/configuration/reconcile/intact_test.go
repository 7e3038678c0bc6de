package reconcile

import (
	"testing"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// TestIntact: what a round wrote is intact, with and without policies, and nothing that another client
// changed is.
func TestIntact(t *testing.T) {
	for _, in := range []configuration.Input{full(t), input(t)} {
		b := newBench(t, in)
		b.round(t)
		mutating, validating := b.mutating.object, b.validating.object
		if !MutatingIntact(mutating) || !ValidatingIntact(validating) {
			t.Fatal("what the gateway wrote is not intact")
		}
		for reason, spoil := range map[string]func(*admission.MutatingWebhookConfiguration, *admission.ValidatingWebhookConfiguration){
			"no webhooks": func(m *admission.MutatingWebhookConfiguration, v *admission.ValidatingWebhookConfiguration) {
				m.Webhooks, v.Webhooks = nil, nil
			},
			"a webhook more": func(m *admission.MutatingWebhookConfiguration, v *admission.ValidatingWebhookConfiguration) {
				m.Webhooks, v.Webhooks = append(m.Webhooks, admission.MutatingWebhook{Name: "x"}), append(v.Webhooks, admission.ValidatingWebhook{Name: "x"})
			},
			"the probe twice": func(m *admission.MutatingWebhookConfiguration, v *admission.ValidatingWebhookConfiguration) {
				m.Webhooks, v.Webhooks = append(m.Webhooks, m.Webhooks[len(m.Webhooks)-1]), append(v.Webhooks, v.Webhooks[len(v.Webhooks)-1])
			},
			"a mark without a salt": func(m *admission.MutatingWebhookConfiguration, v *admission.ValidatingWebhookConfiguration) {
				for _, probe := range []*admission.WebhookClientConfig{mutatingProbe(m), validatingProbe(v)} {
					at := (*probe.Service.Path)[:len(*probe.Service.Path)-saltLength]
					probe.Service.Path = &at
				}
			},
		} {
			m, v := mutating.DeepCopy(), validating.DeepCopy()
			spoil(m, v)
			if MutatingIntact(m) || ValidatingIntact(v) {
				t.Errorf("%s: intact", reason)
			}
		}
	}
	b := newBench(t, full(t))
	b.round(t)
	ignore, v := admission.Ignore, b.validating.object.DeepCopy()
	for i := range v.Webhooks {
		v.Webhooks[i].FailurePolicy = &ignore
	}
	if ValidatingIntact(v) {
		t.Error("with another failure policy: intact")
	}
}
