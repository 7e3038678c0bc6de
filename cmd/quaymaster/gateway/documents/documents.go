package documents

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/cluster/dryrun"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/election"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/calls"
	"github.com/quaymaster/quaymaster/gateway/cleanup"
	"github.com/quaymaster/quaymaster/gateway/discovery"
	"github.com/quaymaster/quaymaster/gateway/globals"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/gateway/mirrors"
	"github.com/quaymaster/quaymaster/gateway/policies"
	"github.com/quaymaster/quaymaster/gateway/rollout"
	"github.com/quaymaster/quaymaster/gateway/status"
	"github.com/quaymaster/quaymaster/gateway/trust"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// Config holds the dependencies of Load.
type Config struct {
	Configuration config.Configuration
	Around        lookups.Lookups
	State         *gate.Current // receives the policies and mirrors
	Group         *gateway.Group
	Metrics       *metrics.Metrics
	Log           *slog.Logger
	// Offline alters the documents for a process that only reads them; nil for a gateway.
	Offline *Offline
}

// Offline are the differences for a process that only reads the documents of a gateway.
// It does not read the TUF repositories of policies.
type Offline struct {
	// Now is the clock of policies.
	Now func() time.Time
	// Adjust changes the dependencies of policies before they are compiled.
	Adjust func(*engine.CompilerOptions) error
	// Consumer wraps the consumer of the cluster's documents.
	Consumer func(document.Consumer) document.Consumer
}

// Documents are policies, mirrors and global context entries, and the components that keep them
// up to date.
type Documents struct {
	config    Config
	effective *rollout.Effective
	Policies  *policies.Policies
	Mirrors   *mirrors.Mirrors
	Globals   *globals.Entries     // nil when running standalone
	Kinds     *discovery.Discovery // of the cluster; nil as well
	Images    engine.RuleImages
	Compilers engine.Compilers
	owners    *status.Owners // of the status of policies; nil when running standalone
	// UnreadRoots counts the TUF repositories of policies that cannot be read; nil where none are
	// read.
	UnreadRoots func() int
}

// Load loads the policies and mirrors of folders and files, and adds the components that
// load those of the cluster and follow changes.
func Load(c Config) (*Documents, error) {
	d := &Documents{config: c, effective: rollout.NewEffective(c.Configuration.Policies.Audit, c.Log)}
	err := d.compile()
	if err != nil {
		return nil, err
	}
	found, err := NewCatalog(c.Configuration, d.Compilers, d.effective)
	if err != nil {
		return nil, err
	}
	d.Policies = policies.New(policies.Config{Catalog: found, State: c.State, Effective: d.effective, Metrics: c.Metrics, Log: c.Log})
	if c.Around.Cluster != nil && c.Configuration.Guards() {
		d.Policies.Await(rollout.Source) // until their approvals are loaded
		c.Group.Add("guard", rollout.NewApprovals(d.Rollout()))
	}
	if c.Offline == nil {
		d.readRoots()
	}
	d.Mirrors = mirrors.New(c.State, c.Metrics, c.Log, &d.Policies.Updates)
	c.Group.Require("policies", "the policies are not loaded yet", d.Policies)
	c.Group.Require("mirrors", "the mirrors are not loaded yet", d.Mirrors)
	if c.Around.Cluster != nil {
		if err := d.watch(); err != nil {
			return nil, err
		}
	}
	if folders := c.Configuration.Policies.Folders; len(folders) > 0 {
		follow, err := d.Policies.WatchFolders(folders, c.Around.Files.Consume())
		if err != nil {
			return nil, err
		}
		c.Group.Add("policies in folders", follow)
	}
	return d, d.readMirrors()
}

// compile makes the compilers of every dialect, and their dependencies.
func (d *Documents) compile() (err error) {
	c, settings := d.config, d.config.Configuration.Policies
	services := calls.New(settings.Expressions.HTTPHosts, engine.GuardedTransport)
	options := engine.CompilerOptions{
		ConfigMaps: c.Around.ConfigMaps, RuleConfigMaps: c.Around.RuleConfigMaps, Secrets: c.Around.Secrets, KyvernoSecrets: settings.SecretNamespace,
		SigstoreSecrets: settings.ClusterImagePolicies.Namespace, OptIn: settings.ClusterImagePolicies.OptIn,
		HTTP: services, Resources: engine.FileObjects{ConfigMaps: c.Around.ConfigMaps}, Images: &d.Images,
		Manifests: manifests.Options{Signatures: &d.Images}, Caller: calls.Rules{Services: services},
	}
	if c.Around.Cluster != nil {
		if err := d.compileInCluster(&options, services); err != nil {
			return err
		}
	}
	if c.Offline != nil {
		if err := c.Offline.Adjust(&options); err != nil {
			return err
		}
	}
	d.Compilers, err = engine.NewCompilers(options)
	return err
}

// compileInCluster has policies use the cluster.
func (d *Documents) compileInCluster(options *engine.CompilerOptions, services *calls.Caller) (err error) {
	c := d.config
	options.Caller = calls.Rules{Cluster: c.Around.Cluster.Client, Services: services}
	now := time.Now
	if c.Offline != nil {
		now = c.Offline.Now
	} else { // a command reads the cluster, and makes nothing in it
		options.Manifests.DryRuns = dryrun.Runner{Dynamic: c.Around.Cluster.Client.Dynamic, Own: c.Configuration.Namespace}
	}
	store := globalcontext.NewStore(now)
	d.Globals, err = globals.New(c.Around.Cluster.Client, store, services, c.Metrics, c.Log)
	if err != nil {
		return err
	}
	c.Group.Add("global context", gateway.Loop(d.Globals.Run))
	options.Globals = engine.Globals{Expressions: globalcontext.Expressions{Store: store}}
	objects, err := cluster.NewObjects(cluster.ObjectOptions{Client: c.Around.Cluster.Client})
	if err != nil {
		return err
	}
	c.Group.OnClose(objects.Close)
	d.Kinds = discovery.New(discovery.DiscovererOf(c.Around.Cluster.Client.Typed.Discovery()), func() { d.Policies.Again(namesKinds) }, c.Log)
	c.Group.Require("kinds", "it is not known yet which kinds the API server serves", d.Kinds)
	c.Group.Add("kinds", gateway.Loop(func(ctx context.Context) { d.Kinds.Run(ctx, &c.Around.Cluster.Defined) }))
	options.Resources, options.Kinds = engine.ClusterObjects{Objects: objects}, constraint.Later(d.Kinds)
	return nil
}

// readRoots reads the TUF repositories that policies and TrustRoots name.
func (d *Documents) readRoots() {
	reader := &trust.Roots{
		Fetch: engine.NewFetcher(), Folder: d.config.Configuration.Trust.CacheFolder, Log: d.config.Log,
		TrustRoots: d.Compilers.TrustRoots, Attestors: d.Compilers.Attestors,
		Documents: func() []catalog.Entry { return d.Policies.Catalog.Snapshot().Entries },
		Changed:   &d.Policies.Updates, Reported: d.Policies.StatusChanged.Notify,
	}
	d.UnreadRoots, d.Policies.Reporter.Roots = reader.Unread, reader.State
	d.config.Group.Add("trusted roots of policies", gateway.Loop(reader.Run))
}

// watch prepares the watching of the cluster's documents.
func (d *Documents) watch() error {
	c, client, p, m := d.config, d.config.Around.Cluster.Client, d.Policies, d.Mirrors
	p.Await(kinds.FromCluster)
	m.AwaitCluster()
	p.Reporter.Leads = d.leads
	m.ReportTo(nil, d.leads)
	if c.Around.Cluster.Events != nil {
		p.Reporter.Events = c.Around.Cluster.Events
		m.ReportTo(c.Around.Cluster.Events, d.leads)
	}
	setting := c.Configuration.Policies.WriteStatus
	d.owners = &status.Owners{Always: setting == config.StatusAlways, Never: setting == config.StatusNever, Client: client.Metadata, Log: c.Log}
	p.Reporter.Writes, p.Reporter.Readiness = d.owners.Writes, status.NewReadiness(c.Log, p.StatusChanged.Notify)
	p.Reporter.Controllers = &status.Controllers{
		Own: c.Configuration.Has(config.RoleBackground), Leases: client.Leases, Namespace: c.Configuration.Namespace,
		Names: []string{election.Scan, election.Background},
	}
	own, lacking := c.Configuration, cleanup.Lacking(client.Leases, c.Configuration.Namespace)
	p.Reporter.Deletions = &status.Deletions{Load: lacking, Controllers: &status.Controllers{
		Own: own.Has(config.RoleCleanup) && !own.Shadow(), Leases: client.Leases, Namespace: own.Namespace, Names: []string{election.Cleanup},
	}}
	var consumer document.Consumer = &policies.Router{Globals: d.Globals, Mirrors: m, Policies: p}
	if c.Offline != nil {
		consumer = c.Offline.Consumer(consumer)
	}
	watcher, err := document.New(document.Options{
		Kinds:   append(append(kinds.Watched(), kinds.GlobalContext()), kinds.Mirrors(c.Configuration.Mirrors.OpenShift)...),
		Dynamic: client.Dynamic, Metadata: client.Metadata, Definitions: client,
		Consumer: consumer, Observer: policies.Log{To: c.Log}, Defined: c.Around.Cluster.Defined.Notify,
	})
	if err != nil {
		return err
	}
	c.Group.Require("watch", "the policies and mirrors in the cluster are not listed yet; where the log names a definition that serves no version which is read, have it serve one, delete it, or update the gateway", watcher)
	c.Group.Add("policies", gateway.Loop(watcher.Run))
	return nil
}

// leads reports whether this process writes the state of policies and mirrors to the cluster.
func (d *Documents) leads() bool {
	return d.config.Configuration.Has(config.RoleAdmission) && d.config.Around.Cluster.Leader.Leads()
}

// readMirrors loads the mirrors of files, and follows these and the ConfigMaps.
func (d *Documents) readMirrors() error {
	c, settings := d.config, d.config.Configuration.Mirrors
	if len(settings.Files) > 0 {
		follow, err := d.Mirrors.FollowFiles(settings.Files, engine.ReadDocuments)
		if err != nil {
			return err
		}
		c.Group.Add("mirrors in files", follow)
	}
	if len(settings.ConfigMaps) > 0 {
		c.Group.Add("mirrors in ConfigMaps", d.Mirrors.FollowConfigMaps(settings.ConfigMaps, c.Around.ConfigMaps))
	}
	return d.Mirrors.Publish() // there may be nothing to wait for
}

// Current returns the active policies and the changes of their set.
func (d *Documents) Current() policies.Current { return d.Policies.Current() }

// Active returns the active policies; nil until they are loaded.
func (d *Documents) Active() *set.Set { return d.Policies.Active() }

// Sequence is the number of the active set of policies, or of an earlier one.
func (d *Documents) Sequence() int64 { return d.Policies.Sequence() }

// statusPause is the least time between two rounds of writes of the status of policies, which users
// wait for.
const statusPause = 100 * time.Millisecond

// WriteStatus writes the status of policies until ctx ends, on the leader.
func (d *Documents) WriteStatus(ctx context.Context) {
	(&record.Reporter{
		Client: d.config.Around.Cluster.Client.Dynamic, Desired: d.Policies.Desired, Changed: d.Policies.StatusChanged.Changed, Pause: statusPause,
		Failed: gateway.Warn(d.config.Log, "the status of a policy was not written"),
	}).Run(ctx)
}

// Overrides are the active ImageOverrides, for metrics; none until they are loaded.
func (d *Documents) Overrides() []metrics.Override {
	set := d.Active()
	if set == nil {
		return nil
	}
	var list []metrics.Override
	for _, o := range set.Overrides() {
		effect := "allow"
		if o.Effect == policy.OverrideDeny || o.Broken != nil {
			effect = "deny"
		}
		list = append(list, metrics.Override{Name: o.Name, Effect: effect, Expires: o.Expires})
	}
	return list
}

// ByID searches the currently active policies.
func (d *Documents) ByID() func(id string) *policy.Policy {
	known := map[string]*policy.Policy{}
	if active := d.Active(); active != nil {
		for _, p := range active.Policies() {
			known[p.ID()] = p
		}
	}
	return func(id string) *policy.Policy { return known[id] }
}

// Rollout holds the dependencies of the components that check new versions of policies.
func (d *Documents) Rollout() rollout.Config {
	in := d.config.Around.Cluster
	c := rollout.Config{
		Effective: d.effective, Catalog: d.Policies.Catalog, Policies: d.Current(),
		Approvals: rollout.NewStore(in.Client.Typed.CoreV1().Secrets(d.config.Configuration.Namespace)), Metrics: d.config.Metrics, Log: d.config.Log,
	}
	if in.Events != nil {
		c.Events = in.Events
	}
	return c
}

// ReportAll reports the state of policies and mirrors again: a new leader does not have its
// predecessor's reports.
func (d *Documents) ReportAll(context.Context) {
	d.Policies.ReportAll()
	d.Mirrors.ReportAll()
}

// FollowOwners determines which engine owns the status of policies, and whether a controller
// runs.
func (d *Documents) FollowOwners(ctx context.Context) {
	var controllers sync.WaitGroup
	defer controllers.Wait()
	controllers.Go(func() { d.Policies.Reporter.Controllers.Follow(ctx, d.Policies.StatusChanged.Notify) })
	controllers.Go(func() { d.Policies.Reporter.Deletions.Controllers.Follow(ctx, d.Policies.StatusChanged.Notify) })
	controllers.Go(func() { d.Policies.Reporter.Deletions.Follow(ctx, d.Policies.StatusChanged.Notify) })
	d.owners.Follow(ctx, func() {
		d.Policies.StatusChanged.Notify()
		d.Globals.StatusChanged.Notify()
	})
}

// WriteMirrors writes the status of mirrors.
func (d *Documents) WriteMirrors(ctx context.Context, targets *mirrors.Targets) {
	(&record.Reporter{
		Kind: "RegistryMirror", Client: d.config.Around.Cluster.Client.Dynamic, Desired: func() []record.Desired { return d.Mirrors.Desired(targets.States()) },
		Changed: d.Mirrors.StatusChanged().Changed, Failed: gateway.Warn(d.config.Log, "the status of a mirror was not written"),
	}).Run(ctx)
}

// WriteGlobals writes the status of global context entries, while the gateway owns it.
func (d *Documents) WriteGlobals(ctx context.Context) {
	(&record.Reporter{
		Kind: "GlobalContextEntry", Client: d.config.Around.Cluster.Client.Dynamic, Changed: d.Globals.StatusChanged.Changed,
		Failed: gateway.Warn(d.config.Log, "the status of a global context entry was not written"),
		Desired: func() []record.Desired {
			if !d.owners.Writes(kinds.KyvernoGroup) {
				return nil
			}
			return d.Globals.Desired()
		},
	}).Run(ctx)
}
