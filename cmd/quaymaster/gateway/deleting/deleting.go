// Package deleting composes the component that deletes objects (role cleanup), and the endpoint for labels
// with the lifetime of objects.
package deleting

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/election"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/certificates"
	"github.com/quaymaster/quaymaster/gateway/cleanup"
	generated "github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/lifetime"
)

// Options are the parts of the gateway that the component uses.
type Options struct {
	Configuration    config.Configuration
	Replica, Version string
	Around           lookups.Lookups
	Documents        *documents.Documents
	Certificates     *certificates.Certificates
	Decisions        *journal.Journal // nil: there is no decision log
	// Open is closed when the preconditions of decisions are met.
	Open    <-chan struct{}
	Group   *gateway.Group // receives the component
	Metrics cleanup.Metrics
	Log     *slog.Logger
}

// Add adds the component, if the process has the role. In shadow mode it does not run, also where
// namespaces are cut over: no selector limits the policies to them.
func Add(o Options) error {
	c := &o.Configuration
	if !c.Has(config.RoleCleanup) || c.Shadow() {
		return nil
	}
	paced, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: c.Kubernetes.Kubeconfig, Context: c.Kubernetes.Context,
		QPS: float64(c.Cleanup.QPS), Burst: max(1, int(c.Cleanup.QPS)), Version: o.Version})
	if err != nil {
		return err
	}
	settings := cleanup.Config{
		Dynamic: paced.Dynamic, Typed: paced.Typed, Leases: o.Around.Cluster.Client.Leases,
		Settings: cleanup.Settings{Namespace: c.Namespace, Replica: o.Replica, Lease: election.Cleanup, TTL: c.HasLifetimes(),
			Limit: c.Cleanup.Limit, AllowedKinds: c.Cleanup.Kinds(), AllowedNamespaces: c.Cleanup.AllowedNamespaces},
		Kinds: o.Documents.Kinds, Policies: o.Documents.Current(), Namespaces: o.Around.Namespaces, Key: o.Certificates.Key, Open: o.Open,
		Metrics: o.Metrics, Log: o.Log,
	}
	if c.Lease() == election.Cleanup {
		settings.Lease = "" // the process as a whole leads by it
	}
	if o.Around.Cluster.Events != nil {
		settings.Events = o.Around.Cluster.Events
	}
	if o.Decisions != nil {
		settings.Record = o.Decisions.TakeDeletion
	}
	made, err := cleanup.New(settings)
	if err != nil {
		return err
	}
	o.Group.Add("cleanup", made)
	return nil
}

// AddEndpoint adds the endpoint for labels with the lifetime of objects, if they have an effect.
func AddEndpoint(o Options, to map[string]http.Handler, queue *admission.Queue, grants *generated.Keeper) error {
	if !o.Configuration.HasLifetimes() {
		return nil
	}
	made, err := lifetime.New(lifetime.Config{
		Authorizer: cleanup.UserAccess{Client: o.Around.Cluster.Client.Typed.AuthorizationV1()}, Grants: grants,
		Annotation: generated.LifetimeAnnotation, Queue: queue, Log: o.Log, Now: time.Now,
	})
	to[lifetime.Path] = made
	return err
}
