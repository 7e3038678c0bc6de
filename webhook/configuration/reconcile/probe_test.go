package reconcile

import (
	"regexp"
	"slices"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/quaymaster/quaymaster/webhook/configuration"
)

var markForm = regexp.MustCompile(`^[0-9a-f]{32}-[0-9a-f]{16}$`)

// TestProbe: each configuration has a webhook that is called at the mark of the
// configuration, for labelled ConfigMaps of the gateway's namespace alone.
func TestProbe(t *testing.T) {
	for _, row := range []struct {
		reason   string
		endpoint configuration.Endpoint
		at       func(admission.WebhookClientConfig) string
		prefix   string
	}{
		{"by the Service", configuration.Endpoint{Namespace: "quaymaster", Service: "quaymaster"}, func(c admission.WebhookClientConfig) string { return *c.Service.Path }, "/probe/"},
		{"by a URL", configuration.Endpoint{URL: "https://gateway.example:9443/base"}, func(c admission.WebhookClientConfig) string { return *c.URL }, "https://gateway.example:9443/base/probe/"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			in := full(t)
			in.Endpoint = row.endpoint
			b := newBench(t, in)
			b.round(t)
			m, v := b.mutating.object.Webhooks, b.validating.object.Webhooks
			mutates, validates := m[len(m)-1], v[len(v)-1]
			if row.at(mutates.ClientConfig) != row.prefix+b.left.Mutating || row.at(validates.ClientConfig) != row.prefix+b.left.Validating {
				t.Errorf("called are %s and %s, want %v", row.at(mutates.ClientConfig), row.at(validates.ClientConfig), b.left)
			}
			if !markForm.MatchString(b.left.Mutating) || !markForm.MatchString(b.left.Validating) || b.left.Mutating == b.left.Validating {
				t.Errorf("the marks are %q and %q", b.left.Mutating, b.left.Validating)
			}
			if validates.Name != probeName || mutates.Name != probeName || *validates.FailurePolicy != admission.Ignore || *validates.SideEffects != admission.SideEffectClassNone || *validates.TimeoutSeconds > 5 {
				t.Errorf("the probe is %+v", validates)
			}
			rule := validates.Rules[0]
			if len(validates.Rules) != 1 || !slices.Equal(rule.Operations, []admission.OperationType{admission.Create}) || !slices.Equal(rule.Resources, []string{"configmaps"}) ||
				validates.NamespaceSelector.MatchLabels[corev1.LabelMetadataName] != in.Namespace || len(validates.ObjectSelector.MatchExpressions) != 1 {
				t.Errorf("the probe matches %+v", validates)
			}
			if errs := validation.ValidateLabelSelector(validates.ObjectSelector, validation.LabelSelectorValidationOptions{}, field.NewPath("objectSelector")); len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
}

// TestMarks: a mark changes with the configuration that carries it, and with every write of
// it; nothing else changes it.
func TestMarks(t *testing.T) {
	type marks struct{ mutating, validating bool }
	for _, row := range []struct {
		reason  string
		happen  func(*bench)
		changed marks
		hash    bool // that of the validating one changes, too
	}{
		{"nothing", func(*bench) {}, marks{}, false},
		{"the same policies in another order", func(b *bench) { slices.Reverse(b.source.input.Policies) }, marks{}, false},
		{"others' words", func(b *bench) { b.validating.object.Annotations["note"] = "x" }, marks{}, false},
		{"documents are not asked about any more", func(b *bench) { b.source.input.Documents = nil }, marks{validating: true}, true},
		{"another client takes a webhook out, and leaves the probe", func(b *bench) { b.validating.object.Webhooks = b.validating.object.Webhooks[1:] }, marks{validating: true}, false},
		{"another client takes the probe out", func(b *bench) {
			b.validating.object.Webhooks = b.validating.object.Webhooks[:len(b.validating.object.Webhooks)-1]
		}, marks{validating: true}, false},
		{"another client forges a mark without a salt", func(b *bench) {
			at := "/probe/" + b.left.Validating[:hashLength]
			validatingProbe(b.validating.object).Service.Path = &at
		}, marks{validating: true}, false},
		{"deleted", func(b *bench) { b.mutating.remove() }, marks{mutating: true}, false},
		{"another leader", func(b *bench) { b.lead(t) }, marks{}, false},
	} {
		t.Run(row.reason, bubble(func(t *testing.T) {
			b := newBench(t, full(t))
			b.round(t)
			before := b.left
			b.validating.object, b.mutating.object = b.validating.object.DeepCopy(), b.mutating.object.DeepCopy()
			row.happen(b)
			b.round(t)
			if got := (marks{b.left.Mutating != before.Mutating, b.left.Validating != before.Validating}); got != row.changed {
				t.Errorf("changed: %+v, want %+v", got, row.changed)
			}
			if changed := b.left.Validating[:hashLength] != before.Validating[:hashLength]; changed != row.hash {
				t.Errorf("the hash changed: %t", changed)
			}
			if *validatingProbe(b.validating.object).Service.Path != configuration.ProbePath+"/"+b.left.Validating {
				t.Errorf("the probe is called at %s, and the mark is %s", *validatingProbe(b.validating.object).Service.Path, b.left.Validating)
			}
		}))
	}
}

// TestStoredOtherwise: a configuration that the API server changed on the way in is not
// reported as kept.
func TestStoredOtherwise(t *testing.T) {
	b := newBench(t, full(t))
	b.validating.alter = func(c *admission.ValidatingWebhookConfiguration) { c.Webhooks = c.Webhooks[1:] }
	if err := b.reconciler.Reconcile(t.Context()); err == nil || b.kept != 0 {
		t.Errorf("%v, kept %d times", err, b.kept)
	}
	b.validating.alter = nil
	b.round(t)
	if b.kept != 1 {
		t.Errorf("kept %d times once it is stored as it was written", b.kept)
	}
}
