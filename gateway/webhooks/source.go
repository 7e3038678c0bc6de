package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	registration "k8s.io/api/admissionregistration/v1"
	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/gateway/discovery"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/gateway/status"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	generated "github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/configuration/reconcile"
	"github.com/quaymaster/quaymaster/webhook/configuration/served"
	"github.com/quaymaster/quaymaster/webhook/lifetime"
)

// source makes the webhook configurations: it is a reconcile.Source.
type source struct {
	Config
	served     []configuration.Resource // the last discovery; used by only one goroutine
	orphans    bool                     // a missing owner of the configurations was logged
	account    string                   // the gateway's user; empty until it is known
	reconciled *atomic.Int64            // the time at which the configurations were last correct
	// sequence is the number of set, which the last Input was made of, or of an earlier one.
	sequence int64
	set      *set.Set
	natives  *natives
	native   status.Native // the last that was read
}

// Input implements reconcile.Source.
func (w *source) Input(ctx context.Context) (configuration.Input, error) {
	w.sequence = w.Documents.Sequence() // before the set, so that it is not newer
	set, mirrors := w.Documents.Active(), w.Mirrors()
	if set == nil || mirrors == nil {
		return configuration.Input{}, errors.New("the policies and mirrors are not known yet")
	}
	lists, failed, err := discovery.DiscovererOf(w.Client.Typed.Discovery())()
	if err != nil {
		return configuration.Input{}, fmt.Errorf("which resources does the API server serve: %w", err)
	}
	w.set, w.native = set, w.natives.read(ctx)
	policies := slices.DeleteFunc(slices.Clone(set.Policies()), w.native.LeftOut)
	w.served = served.Resources(lists, failed, w.served)
	owner, err := w.owner(ctx)
	if err != nil {
		return configuration.Input{}, err
	}
	labelled := configuration.Labelled{}
	if w.Settings.OptIn {
		labelled = configuration.Labelled{Label: kinds.SigstoreGroup + "/include", Value: "true",
			Is: func(p *policy.Policy) bool { return p.Kind == "ClusterImagePolicy" }}
	}
	return configuration.Input{
		Labelled: labelled,
		Policies: unanswered(w.Settings.FailurePolicy, slices.Concat(policies, overriding(set))), Exceptions: set.Exceptions(),
		Resources: w.served, Failed: failed, CABundle: w.Certificates.Bundle(),
		Endpoint:  w.endpoint(),
		Namespace: w.Settings.Namespace, Exclusions: configuration.Exclusions{Accounts: w.accounts(ctx), ExcludedNamespaces: w.Settings.ExcludedNamespaces},
		Pinning: w.Settings.Pinning,
		Mirrors: unmirrored(w.Settings.FailurePolicy, requirements(mirrors)), Documents: kinds.Validated(), Owner: owner,
		BreakGlass: w.Settings.BreakGlass, Shadow: w.Settings.Shadow,
	}, nil
}

// accounts returns the gateway's user, which outside of the cluster is no service account of its
// namespace. If the API server does not return it, the result is empty and the service accounts
// count by their names.
func (w *source) accounts(ctx context.Context) []string {
	if w.account == "" {
		self, err := w.Client.Typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			w.Log.Debug("the gateway's own user is not known", slog.String("error", err.Error()))
			return nil
		}
		w.account = self.Status.UserInfo.Username
	}
	if w.account == "" {
		return nil
	}
	return []string{w.account}
}

// requirements returns the requirements of mirrors on the configurations.
func requirements(set *mirror.Set) configuration.Mirrors {
	switch {
	case len(set.Documents()) == 0:
		return configuration.NoMirrors
	case set.Denies():
		return configuration.MirrorsClosed
	}
	return configuration.MirrorsOpen
}

// endpoint is the address of the gateway for the API server.
func (w *source) endpoint() configuration.Endpoint {
	if w.Settings.URL != "" {
		return configuration.Endpoint{URL: w.Settings.URL}
	}
	return configuration.Endpoint{Namespace: w.Settings.Namespace, Service: w.Settings.Service, Port: w.Settings.Port}
}

// overriding returns the requirements of overrides in the form of policies: a denied image may be
// in any kind that runs images, and must not be admitted because of a missing response.
func overriding(set *set.Set) []*policy.Policy {
	var list []*policy.Policy
	for _, o := range set.Overrides() {
		if o.Effect == policy.OverrideDeny {
			list = append(list, &policy.Policy{
				Kind: "ImageOverride", Name: o.Name,
				Targets: []policy.Target{{Group: "*", Version: "*", Kind: "*", Namespaces: o.Namespaces}},
			})
		}
	}
	return list
}

// owner is the release's ClusterRole, so that the configurations are deleted with it. A gateway
// outside of the cluster may have none.
func (w *source) owner(ctx context.Context) (metav1.OwnerReference, error) {
	role, err := w.Client.Typed.RbacV1().ClusterRoles().Get(ctx, w.Settings.Owner, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && w.Settings.URL != "" {
		if !w.orphans {
			w.orphans = true
			w.Log.Warn("nothing owns the webhook configurations: delete them when the gateway is not wanted any more",
				slog.String("clusterRole", w.Settings.Owner), slog.String("configurations", configuration.Name))
		}
		return metav1.OwnerReference{}, nil
	}
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("the ClusterRole %s, which owns the webhook configurations (webhooks.owner): %w", w.Settings.Owner, err)
	}
	return metav1.OwnerReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: role.Name, UID: role.UID}, nil
}

// reconciler maintains the configurations; run it on one replica.
func (w *source) reconciler(changed <-chan struct{}) (*reconcile.Reconciler, error) {
	api := w.Client.Typed.AdmissionregistrationV1()
	if w.natives == nil {
		w.natives = &natives{
			client: w.Client.Typed.CoreV1(), namespace: w.Settings.Namespace, shadow: w.Settings.Shadow,
			controllers: w.Natives, readiness: w.Readiness, log: w.Log,
		}
	}
	return reconcile.New(reconcile.Options{
		Source: w, Changed: changed, Further: w.further,
		Mutating: api.MutatingWebhookConfigurations(), Validating: api.ValidatingWebhookConfigurations(),
		Warned: func(warnings []configuration.Warning) {
			for _, warning := range warnings {
				w.Log.Warn("the API server is not asked in the way that policies say", slog.String("policy", warning.Policy), slog.String("message", warning.Message))
			}
		},
		Kept: func(round reconcile.Round) {
			w.reconciled.Store(time.Now().Unix())
			w.Readiness.Kept(round, w.sequence, w.set.Policies(), w.native)
			w.natives.changed.Notify()
		},
		Wrote: w.wrote,
		Failed: func(err error) {
			w.Readiness.Broke(err)
			w.Log.Error("the webhook configurations could not be brought up to date", slog.String("error", err.Error()))
		},
	})
}

// further returns the webhook for labels with the lifetime of objects, if they have an effect.
func (w *source) further(in configuration.Input) []registration.MutatingWebhook {
	if !w.Settings.Lifetimes || w.Settings.Shadow {
		return nil
	}
	return []registration.MutatingWebhook{lifetime.Webhook(in.Client(lifetime.Path), generated.LifetimeAnnotation)}
}

// wrote records that a configuration was written. If another client works against the gateway,
// the API server's audit log names it.
func (w *source) wrote(which string, why reconcile.Why) {
	w.Metrics.ConfigurationWritten(which, string(why))
	if why != reconcile.Wanted {
		w.Readiness.Lost()
		w.Log.Warn("a webhook configuration was changed or deleted by another client; it is restored",
			slog.String("configuration", which), slog.String("name", configuration.Name), slog.String("what", string(why)))
	}
}

// unanswered returns the policies with the configured failure policy for the API server. The
// gateway's own decisions use the original ones.
func unanswered(setting string, policies []*policy.Policy) []*policy.Policy {
	if setting == "" {
		return policies
	}
	altered := make([]*policy.Policy, len(policies))
	for i, p := range policies {
		one := *p
		one.FailOpen = setting == string(registration.Ignore)
		altered[i] = &one
	}
	return altered
}

// unmirrored is the same for mirrors.
func unmirrored(setting string, mirrors configuration.Mirrors) configuration.Mirrors {
	if mirrors == configuration.MirrorsClosed && setting == string(registration.Ignore) {
		return configuration.MirrorsOpen
	}
	return mirrors
}
