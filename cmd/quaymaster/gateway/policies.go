package gateway

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/kyverno"
	"github.com/quaymaster/quaymaster/webhook/metrics"
	"github.com/quaymaster/quaymaster/workload"
)

// documentKinds are the custom resources that policies are written as, and which
// versions of them are understood.
func documentKinds() []document.Kind {
	return []document.Kind{
		{Group: "kyverno.io", Resource: "clusterpolicies", Versions: []string{"v1", "v2beta1"}},
		{Group: "kyverno.io", Resource: "policies", Versions: []string{"v1", "v2beta1"}},
		{Group: "kyverno.io", Resource: "policyexceptions", Versions: []string{"v2", "v2beta1"}},
	}
}

// documentResources are the same, for the door that looks at them.
func documentResources() []schema.GroupResource {
	var list []schema.GroupResource
	for _, kind := range documentKinds() {
		list = append(list, schema.GroupResource{Group: kind.Group, Resource: kind.Resource})
	}
	return list
}

// newCatalog makes an empty catalog of every dialect.
func newCatalog(c Configuration, around surroundings) (*catalog.Catalog, error) {
	compiler, err := newCompiler(c.Policies, around.configMaps)
	if err != nil {
		return nil, err
	}
	options := catalog.Options{
		Dialects:            []catalog.Dialect{kyverno.Policies{Compiler: compiler}},
		Exceptions:          []catalog.Exceptions{kyverno.Exceptions{Compiler: compiler}},
		ExceptionNamespaces: c.Exceptions.Namespaces,
	}
	if c.Policies.Selector != "" {
		selector, err := labels.Parse(c.Policies.Selector)
		if err != nil {
			return nil, err
		}
		options.Selects = func(of map[string]string) bool { return selector.Matches(labels.Set(of)) }
	}
	return catalog.New(options)
}

// policies brings what the catalog holds to whoever rests on it.
type policies struct {
	catalog *catalog.Catalog
	state   *gate.Current
	metrics *metrics.Metrics
	log     *slog.Logger
	events  eventWriter // may be nil
	status  *record.Status
	changed chan struct{} // for the webhook configurations; holds one
	// inCluster and inFolders say that a source has told all that it has; nil for
	// one that there is not.
	inCluster, inFolders *atomic.Bool
	said                 map[string]string // what was logged of each document
}

// publish makes the catalog's snapshot the current one.
func (p *policies) publish() {
	if p.inCluster != nil && !p.inCluster.Load() || p.inFolders != nil && !p.inFolders.Load() {
		return // half of the policies would admit what the other half denies
	}
	now := p.catalog.Snapshot()
	p.state.ReplacePolicies(now.Set)
	list := make([]metrics.Policy, 0, len(now.Entries))
	said := make(map[string]string, len(now.Entries))
	for _, entry := range now.Entries {
		id := entry.Key
		if entry.Policy != nil {
			id = entry.Policy.ID()
		}
		list = append(list, metrics.Policy{ID: id, State: metrics.State(entry.State)})
		said[entry.Key] = string(entry.State) + entry.Why
		if p.said[entry.Key] != said[entry.Key] {
			p.tell(entry)
		}
	}
	p.said = said
	p.metrics.SetPolicies(list)
	select {
	case p.changed <- struct{}{}:
	default:
	}
	p.log.Info("policies", slog.Int("documents", len(now.Entries)), slog.Int("active", len(now.Set.Policies())), slog.String("hash", now.Set.Hash()))
}

// tell says what became of a document.
func (p *policies) tell(entry catalog.Entry) {
	attrs := []any{slog.String("source", entry.Source), slog.String("state", string(entry.State))}
	if entry.State != catalog.Broken {
		p.log.Info("policy document", append(attrs, slog.String("why", entry.Why))...)
		return
	}
	p.log.Error("a policy is broken: what it names is denied until it is corrected, unless it fails open", append(attrs, slog.String("error", entry.Why))...)
	if p.events != nil && entry.Policy != nil {
		p.events.Record(record.Event{
			Type: core.EventTypeWarning, Reason: "PolicyError", Action: "Compile", Regarding: policyOf(entry.Policy), Note: entry.Why,
		})
	}
}

// Changed implements document.Consumer.
func (p *policies) Changed(_ context.Context, upserts []document.Document, deletes []document.Key) {
	documents := make([]catalog.Document, len(upserts))
	for i, d := range upserts {
		documents[i] = catalog.Document{Key: clusterKey(d.Key), Text: d.Raw, Source: "the cluster: " + d.Key.String()}
	}
	keys := make([]string, len(deletes))
	for i, key := range deletes {
		keys[i] = clusterKey(key)
	}
	p.catalog.Put(documents...)
	p.catalog.Remove(keys...)
	p.inCluster.Store(true)
	p.publish()
	p.report(upserts)
}

// clusterKey keeps the cluster's documents from a folder's; of two that say the
// same, the cluster's stands first.
func clusterKey(key document.Key) string { return "cluster/" + key.String() }

// report writes the state of documents into their status.
func (p *policies) report(told []document.Document) {
	if p.status == nil {
		return
	}
	entries := map[string]catalog.Entry{}
	for _, entry := range p.catalog.Snapshot().Entries {
		entries[entry.Key] = entry
	}
	for _, d := range told {
		entry, ok := entries[clusterKey(d.Key)]
		if !ok || entry.State == catalog.NotOurs || d.Key.Resource == "policyexceptions" {
			continue
		}
		condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Active", Message: "the policy is active"}
		if entry.State == catalog.Broken {
			condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Broken", entry.Why
		}
		p.status.Set(record.Object{
			Resource:  schema.GroupVersionResource{Group: d.Kind.Group, Version: d.Kind.Version, Resource: d.Key.Resource},
			Namespace: d.Key.Namespace, Name: d.Key.Name, UID: types.UID(d.UID),
		}, condition)
	}
}

// Pruned implements document.Observer.
func (p *policies) Pruned(kind schema.GroupVersionResource, place string) {
	p.log.Warn("the API server drops unknown fields of these documents before anybody can see and refuse them: a misspelt field is lost without a word",
		slog.String("resource", kind.GroupResource().String()), slog.String("version", kind.Version), slog.String("below", place))
}

// Served implements document.Observer.
func (p *policies) Served(kind schema.GroupVersionResource, served bool) {
	p.log.Info("custom resource", slog.String("resource", kind.GroupResource().String()), slog.String("version", kind.Version), slog.Bool("watched", served))
}

// Failed implements document.Observer.
func (p *policies) Failed(err error) {
	p.log.Warn("policies cannot be watched; those that were active stay so", slog.String("error", err.Error()))
}

// watchFolders loads the folders and follows their changes.
func (p *policies) watchFolders(paths []string, into *files) (task, error) {
	folder, err := catalog.NewFolder(catalog.FolderOptions{Paths: paths, Catalog: p.catalog, Others: func(objects []workload.Object) error {
		if into == nil {
			return nil
		}
		known := engine.NewResources()
		var errs []error
		for _, object := range objects {
			errs = append(errs, known.Add(object))
		}
		into.current.Store(known)
		return errors.Join(errs...)
	}})
	if err != nil {
		return task{}, err
	}
	if _, err := folder.Load(); err != nil {
		return task{}, err
	}
	p.inFolders.Store(true)
	p.publish()
	return forever("policies in folders", func(ctx context.Context) {
		folder.Watch(ctx, func(changed bool, err error) {
			if err != nil {
				p.log.Error("the policies in folders cannot be read; those that were active stay so", slog.String("error", err.Error()))
			}
			if changed {
				p.publish()
			}
		})
	}), nil
}
