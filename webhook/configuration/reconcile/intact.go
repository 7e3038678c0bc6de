package reconcile

import (
	"path"
	"slices"

	admission "k8s.io/api/admissionregistration/v1"
)

// MutatingIntact reports whether a configuration has the webhooks that a gateway wrote, by the hash in
// the mark of its probe webhook. It does not report whether the policies require others by now.
func MutatingIntact(c *admission.MutatingWebhookConfiguration) bool {
	others := slices.DeleteFunc(slices.Clone(c.Webhooks), func(w admission.MutatingWebhook) bool { return w.Name == probeName })
	return isIntact("mutating", others, len(c.Webhooks)-len(others), mutatingProbe(c))
}

// ValidatingIntact is MutatingIntact of the other configuration.
func ValidatingIntact(c *admission.ValidatingWebhookConfiguration) bool {
	others := slices.DeleteFunc(slices.Clone(c.Webhooks), func(w admission.ValidatingWebhook) bool { return w.Name == probeName })
	return isIntact("validating", others, len(c.Webhooks)-len(others), validatingProbe(c))
}

func isIntact[T any](which string, webhooks []T, probes int, probe *admission.WebhookClientConfig) bool {
	if probes != 1 {
		return false
	}
	var list any = webhooks
	if len(webhooks) == 0 {
		list = []T(nil) // as a round without webhooks has it: null in JSON
	}
	at, err := markPath(which, list)
	if err != nil {
		return false
	}
	mark, hash := markOf(*probe), path.Base(at)
	return len(mark) == hashLength+1+saltLength && mark[:hashLength] == hash && mark[hashLength] == '-' && isHex(mark[hashLength+1:], saltLength)
}
