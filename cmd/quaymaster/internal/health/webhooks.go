package health

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/configuration/reconcile"
)

// The kinds of webhook configurations.
const (
	mutatingKind   = "MutatingWebhookConfiguration"
	validatingKind = "ValidatingWebhookConfiguration"
)

// webhooks reads the webhook configurations, and the expiry of the authorities in them.
func (r Reader) webhooks(ctx context.Context, authorities *Certificate) Webhooks {
	api := r.Client.Typed.AdmissionregistrationV1()
	found := Webhooks{Items: []Webhook{}}
	var clients []admission.WebhookClientConfig
	mutating, err := api.MutatingWebhookConfigurations().Get(ctx, configuration.Name, metav1.GetOptions{})
	if !found.add(mutatingKind, err, len(mutating.Webhooks), func() bool { return reconcile.MutatingIntact(mutating) }) {
		return found
	}
	for _, w := range mutating.Webhooks {
		clients = append(clients, w.ClientConfig)
	}
	validating, err := api.ValidatingWebhookConfigurations().Get(ctx, configuration.Name, metav1.GetOptions{})
	if !found.add(validatingKind, err, len(validating.Webhooks), func() bool { return reconcile.ValidatingIntact(validating) }) {
		return found
	}
	for _, w := range validating.Webhooks {
		clients = append(clients, w.ClientConfig)
	}
	for _, c := range clients {
		end := lastEnd(c.CABundle)
		if !end.IsZero() && (authorities.AuthorityExpires.IsZero() || end.Before(authorities.AuthorityExpires)) {
			authorities.AuthorityExpires = end
		}
	}
	return found
}

// add records one configuration; false if it is unknown.
func (w *Webhooks) add(kind string, err error, count int, intact func() bool) bool {
	one := Webhook{Kind: kind, Name: configuration.Name, State: Changed, Count: count}
	switch {
	case apierrors.IsNotFound(err):
		one.State, one.Count = Missing, 0
	case err != nil && kind == mutatingKind:
		w.Unread = unreadOf(err, "get", "mutatingwebhookconfigurations.admissionregistration.k8s.io", "")
		return false
	case err != nil:
		w.Unread = unreadOf(err, "get", "validatingwebhookconfigurations.admissionregistration.k8s.io", "")
		return false
	case intact():
		one.State = Intact
	}
	w.Items = append(w.Items, one)
	return true
}

// lastEnd is the end of the authority in a bundle that lasts longest; zero without one.
func lastEnd(bundle []byte) time.Time {
	var last time.Time
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if authority, err := x509.ParseCertificate(block.Bytes); err == nil && authority.NotAfter.After(last) {
			last = authority.NotAfter.UTC()
		}
	}
	return last
}
