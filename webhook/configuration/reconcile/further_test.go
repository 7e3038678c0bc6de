package reconcile

import (
	"slices"
	"testing"
	"testing/synctest"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// TestFurther: a further webhook follows those of policies, is part of the mark of the configuration,
// and is removed when it is no longer wanted.
func TestFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wanted := newBench(t, full(t)), true
		b.reconciler.options.Further = func(in configuration.Input) []admission.MutatingWebhook {
			if !wanted {
				return nil
			}
			return []admission.MutatingWebhook{{Name: "further.quaymaster.dev", ClientConfig: in.Client("/further")}}
		}
		names := func() (list []string) {
			for _, w := range b.mutating.object.Webhooks {
				list = append(list, w.Name)
			}
			return list
		}
		b.round(t)
		with := names()
		if at := slices.Index(with, "further.quaymaster.dev"); at < 0 || at != len(with)-2 || !MutatingIntact(b.mutating.object) {
			t.Errorf("%q", with)
		}
		b.round(t)
		if b.mutating.writes != 1 {
			t.Errorf("%d writes", b.mutating.writes)
		}
		wanted = false
		b.round(t)
		if got := names(); len(got) != len(with)-1 || slices.Contains(got, "further.quaymaster.dev") || b.mutating.writes != 2 {
			t.Errorf("%q after %d writes", got, b.mutating.writes)
		}
	})
}
