package policies

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/gateway/rollout"
	"github.com/quaymaster/quaymaster/gateway/status"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/webhook/metrics"
	"github.com/quaymaster/quaymaster/workload"
)

// fromFolders is the source of policies in folders.
const fromFolders = "folders"

// Policies supplies the catalog's content to its users. Its sources report changes from
// goroutines of their own.
type Policies struct {
	Catalog       *catalog.Catalog
	state         *gate.Current
	metrics       *metrics.Metrics
	log           *slog.Logger
	Reporter      status.Reporter
	Updates       gateway.Signal           // the published set, a mirror or a trusted root has changed
	StatusChanged gateway.Signal           // the status of a document may have changed
	effective     *rollout.Effective       // nil: every policy is in force as written
	there         atomic.Pointer[[]string] // of the cluster, see resources

	mu       sync.Mutex // held while publishing
	sources  documents.Sources
	reported documents.States
	objects  map[string]status.Object // of the cluster's documents
	// sequence counts the published sets. It is stored after the set, so a set that is read after
	// it is at least as new.
	sequence atomic.Int64
}

// Config holds the dependencies of Policies.
type Config struct {
	Catalog *catalog.Catalog
	State   *gate.Current // receives the set
	// Effective are the versions in force; nil: every policy is in force as written.
	Effective *rollout.Effective
	Metrics   *metrics.Metrics
	Log       *slog.Logger
}

// New makes Policies without documents.
func New(c Config) *Policies {
	reporter := status.Reporter{Log: c.Log}
	if c.Effective != nil {
		reporter.Withheld = c.Effective.Why
	}
	return &Policies{
		Catalog: c.Catalog, state: c.State, metrics: c.Metrics, log: c.Log, effective: c.Effective, Reporter: reporter,
		sources: documents.NewSources(), reported: documents.States{}, objects: map[string]status.Object{},
	}
}

// Ready returns a channel that is closed after the first set.
func (p *Policies) Ready() <-chan struct{} { return p.sources.Ready() }

// Await delays publishing until the source has all of its initial documents.
func (p *Policies) Await(source string) { p.sources.Await(source) }

// publish makes the catalog's snapshot the current one.
func (p *Policies) publish(source string) {
	if !p.sources.Arrived(source) {
		return // half of the policies would admit images that the other half denies
	}
	now := p.Catalog.Snapshot()
	p.state.ReplacePolicies(now.Set)
	p.count(now.Entries)
	sequence := p.sequence.Load() + 1
	there := make(map[string]bool, len(now.Entries))
	for _, entry := range now.Entries {
		object := p.objects[entry.Key]
		there[entry.Key] = true
		changed := p.reported.Changed(entry.Key, fmt.Sprint(entry.State, " ", object.UID, " ", entry.Why, " ", p.effective.Why(entry)))
		if object.Name != "" && (changed || object.Since == status.Unpublished) {
			object.Since = sequence
			p.objects[entry.Key] = object
		}
		if changed {
			p.Reporter.LogState(entry)
			p.Reporter.RecordEvent(entry, object.Object)
		}
	}
	p.reported.Keep(func(key string) bool { return there[key] })
	p.sequence.Store(sequence)
	p.list()
	p.sources.Used()
	p.Updates.Notify()
	p.StatusChanged.Notify()
	p.log.Info("policies", slog.Int("documents", len(now.Entries)), slog.Int("active", len(now.Set.Policies())), slog.String("hash", now.Set.Hash()))
}

// list records the resources with documents. Exceptions are left out: a setting determines which
// of them count.
func (p *Policies) list() {
	names := map[string]bool{}
	for _, object := range p.objects {
		resource := object.Resource.GroupResource()
		if kind := kinds.OfResource(resource); kind.Name != "PolicyException" {
			names[resource.String()] = true
		}
	}
	list := slices.Sorted(maps.Keys(names))
	p.there.Store(&list)
}

// Resources are the resources of the cluster's policies and of their dependencies.
func (p *Policies) Resources() []string {
	if list := p.there.Load(); list != nil && len(*list) > 0 {
		return *list
	}
	return []string{"clusterpolicies." + kinds.KyvernoGroup}
}

// count sets the metrics of policies.
func (p *Policies) count(entries []catalog.Entry) {
	list := make([]metrics.Policy, 0, len(entries))
	for _, entry := range entries {
		id := entry.Key
		switch {
		case entry.Policy != nil:
			id = entry.Policy.ID()
		case entry.Override != nil:
			id = entry.Override.ID()
		}
		beside := entry.Exception != nil || entry.Root != nil || entry.Override != nil
		if !beside || entry.State == catalog.Broken {
			list = append(list, metrics.Policy{ID: id, State: metrics.State(entry.State), FailOpen: entry.Policy != nil && entry.Policy.FailOpen})
		}
	}
	p.metrics.SetPolicies(list)
	p.metrics.SetWithheld(p.effective.Count(entries))
}

// ReportAll reports the state of each policy to the cluster: a new leader does not have its
// predecessor's reports.
func (p *Policies) ReportAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, entry := range p.Catalog.Snapshot().Entries {
		p.Reporter.RecordEvent(entry, p.objects[entry.Key].Object)
	}
}

// Desired returns the status of each document of the cluster.
func (p *Policies) Desired() []record.Desired {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []record.Desired
	for _, entry := range p.Catalog.Snapshot().Entries {
		if desired, ok := p.Reporter.Desired(entry, p.objects[entry.Key]); ok {
			list = append(list, desired)
		}
	}
	return list
}

// Again compiles the policies of some kinds again.
func (p *Policies) Again(is func(apiVersion, kind string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.effective != nil {
		p.effective.Reset()
	}
	p.Catalog.Again(is)
	p.publish("") // unless a source has incomplete initial documents
}

// Fill publishes documents in place of those of the cluster.
func (p *Policies) Fill(all []catalog.Document) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Catalog.Put(all...)
	p.publish(kinds.FromCluster)
}

// Sequence is the number of the published set, or of an earlier one: a set that is read after it is
// at least as new.
func (p *Policies) Sequence() int64 { return p.sequence.Load() }

// Active returns the active policies; nil until they are loaded.
func (p *Policies) Active() *set.Set {
	now, err := p.state.Snapshot(context.Background())
	if err != nil {
		return nil
	}
	return now.Policies
}

// Current returns the active policies, which can be published again.
func (p *Policies) Current() Current { return Current{p} }

// Current are the active policies.
type Current struct{ of *Policies }

// Policies returns the active ones; nil until they are loaded.
func (c Current) Policies() *set.Set { return c.of.Active() }

// Texts calls do with each policy of the catalog and the text that it was made of; do must not call the catalog.
func (c Current) Texts(do func(entry catalog.Entry, text []byte)) { c.of.Catalog.Texts(do) }

// Changed returns a channel that is closed when they change.
func (c Current) Changed() <-chan struct{} { return c.of.Updates.Changed() }

// Republish publishes them again after approvals, and no longer waits for the source.
func (c Current) Republish(source string) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.Catalog.Publish()
	c.of.publish(source)
}

// Changed implements document.Consumer.
func (p *Policies) Changed(_ context.Context, upserts []document.Document, deletes []document.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := make([]catalog.Document, len(upserts))
	for i, d := range upserts {
		key := kinds.ClusterKey(d.Key)
		changed[i] = catalog.Document{Key: key, Text: d.Raw, Source: "the cluster: " + d.Key.String()}
		p.objects[key] = status.Object{Since: status.Unpublished, Object: documents.ObjectOf(d)}
	}
	keys := make([]string, len(deletes))
	for i, key := range deletes {
		keys[i] = kinds.ClusterKey(key)
		delete(p.objects, keys[i])
	}
	p.Catalog.Put(changed...)
	p.Catalog.Remove(keys...)
	p.publish(kinds.FromCluster)
}

// WatchFolders loads the folders, and returns the component that follows their changes. others
// receives the other documents; nil drops them. A policy of an unknown kind or version is an
// error.
func (p *Policies) WatchFolders(paths []string, others func([]workload.Object) error) (gateway.Component, error) {
	p.Await(fromFolders)
	folder, err := catalog.NewFolder(catalog.FolderOptions{Paths: paths, Catalog: p.Catalog, Others: func(objects []workload.Object) error {
		if err := leftAlone(objects); err != nil {
			return err
		}
		if others != nil {
			if err := others(objects); err != nil {
				return err
			}
		}
		p.warnUnread(objects)
		return nil
	}})
	if err != nil {
		return nil, err
	}
	publish := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.publish(fromFolders)
	}
	if _, err := folder.Load(); err != nil {
		return nil, err
	}
	publish()
	return gateway.Loop(func(ctx context.Context) {
		folder.Watch(ctx, func(changed bool, err error) {
			if err != nil {
				p.log.Error("the policies in folders cannot be read; those that were active stay so", slog.String("error", err.Error()))
			}
			if changed {
				publish()
			}
		})
	}), nil
}

// warnUnread logs the kinds of the documents without an effect.
func (p *Policies) warnUnread(objects []workload.Object) {
	var unread []string
	for _, o := range objects {
		if head := o.APIVersion() + " " + o.Kind(); kinds.IsUnread(o.APIVersion(), o.Kind()) && !slices.Contains(unread, head) {
			unread = append(unread, head)
		}
	}
	if len(unread) > 0 {
		slices.Sort(unread)
		p.log.Warn("documents in policies.folders have no effect: they are no policies that the gateway evaluates, and policies look none of them up", slog.Any("kinds", unread))
	}
}

// leftAlone refuses documents that are meant as policies and that the catalog does not recognise.
func leftAlone(objects []workload.Object) error {
	var errs []error
	for _, o := range objects {
		if !kinds.IsLeftAlone(o.APIVersion(), o.Kind()) {
			errs = append(errs, fmt.Errorf("%s: %s %s is not a policy that this version reads: correct its apiVersion or kind, or remove it from policies.folders",
				o.Source(), o.APIVersion(), o.Kind()))
		}
	}
	return errors.Join(errs...)
}
