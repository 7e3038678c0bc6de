package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/kubeconfig"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/carried"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/offline"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// ClusterFlags name the cluster and the gateway's configuration.
type ClusterFlags struct {
	Context, Kubeconfig, GatewayConfig string
	// Namespace is that of the gateway's ConfigMap; empty means quaymaster.
	Namespace string
	// Use: policies, mirrors and keys are those of the cluster's gateway.
	Use bool
	// optional: the command has --from-cluster.
	optional bool
}

// Register adds the flags to a command that reads a cluster.
func (f *ClusterFlags) Register(cmd *cobra.Command) { f.register(cmd, "") }

// RegisterFor adds the flags to a command that reads a cluster with another flag of its own.
func (f *ClusterFlags) RegisterFor(cmd *cobra.Command, flag string) { f.register(cmd, " for "+flag) }

// RegisterOptional adds the flags to a command that reads a cluster with --from-cluster.
func (f *ClusterFlags) RegisterOptional(cmd *cobra.Command) {
	f.optional = true
	flags := cmd.Flags()
	flags.BoolVar(&f.Use, "from-cluster", false, "use the policies, mirrors and keys of the gateway in a cluster (--context)")
	flags.StringVar(&f.GatewayConfig, "gateway-config", "", "gateway configuration `file`, in place of the ConfigMap quaymaster/quaymaster")
	f.RegisterFor(cmd, "--from-cluster")
}

func (f *ClusterFlags) register(cmd *cobra.Command, use string) {
	flags := cmd.Flags()
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "kubeconfig `file`"+use+" (default: KUBECONFIG or ~/.kube/config)")
	flags.StringVar(&f.Context, "context", "", "kubeconfig `context`"+use+" (default: the current context)")
}

// Resolve sets the context to the current one of the kubeconfig if none is given, so that messages name
// it. An error is one of use.
func (f *ClusterFlags) Resolve(t command.Terminal) error {
	file := t.Kubeconfig(f.Kubeconfig)
	if file == "" { // the service account of a pod
		return nil
	}
	name, err := kubeconfig.Resolve(file, f.Context)
	if _, missing := errors.AsType[*kubeconfig.ContextError](err); missing {
		return fmt.Errorf("--context: %w", err)
	}
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	f.Context = name
	return nil
}

// CheckNamed refuses a cluster that is named and would not be read.
func (f *ClusterFlags) CheckNamed() error {
	if !f.Use && f.Context+f.Kubeconfig != "" {
		return errors.New("--context and --kubeconfig are for --from-cluster")
	}
	return nil
}

func (f *ClusterFlags) check(setup *Flags) error {
	switch {
	case f.optional && !f.Use && f.GatewayConfig != "":
		return errors.New("--gateway-config is for --from-cluster, and for quaymaster bundle create")
	case f.optional && !f.Use:
		return f.CheckNamed()
	case f.Use && setup.Offline:
		return errors.New("--offline opens no connection, and --from-cluster needs one: export a bundle first, by quaymaster bundle create --from-cluster")
	}
	return nil
}

// OpenCluster makes a reader of the cluster.
func (f *Flags) OpenCluster(ctx context.Context, t command.Terminal, clock func() time.Time) (*offline.Reader, []string, error) {
	if err := f.Cluster.Resolve(t); err != nil {
		return nil, nil, err
	}
	file := t.Kubeconfig(f.Cluster.Kubeconfig)
	version := t.Version()
	client, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: file, Context: f.Cluster.Context, Version: version})
	if err != nil {
		return nil, nil, fmt.Errorf("--context: %w", err)
	}
	settings, notes, err := f.GatewaySettings(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	settings.Kubernetes = config.Kubernetes{Kubeconfig: file, Context: f.Cluster.Context}
	settings.Policies.Folders, settings.Mirrors.Files = f.Policies, f.Mirrors
	reader, err := offline.NewReader(ctx, settings, offline.ReaderOptions{Version: version, Now: clock})
	if err != nil {
		return nil, nil, fmt.Errorf("--context %s: %w", f.Cluster.Context, err)
	}
	return reader, notes, nil
}

// GatewaySettings reads the gateway's settings, and returns notes on those that have no effect
// here. A nil client requires the settings in a file.
func (f *Flags) GatewaySettings(ctx context.Context, client *cluster.Client) (config.Configuration, []string, error) {
	instead := carried.Given{Policies: len(f.Policies) > 0, Mirrors: len(f.Mirrors) > 0, TrustedRoot: f.TrustedRoot != ""}
	if f.Cluster.GatewayConfig != "" {
		read, err := config.Load(f.Cluster.GatewayConfig)
		if err != nil {
			return read, nil, fmt.Errorf("--gateway-config: %w", err)
		}
		settings, notes := carried.Settings(read, instead)
		f.follow(read)
		return settings, notes, nil
	}
	read, why := carried.Read(ctx, client, f.Cluster.Namespace)
	if why != nil {
		var err error
		read, err = config.Load("")
		if err != nil {
			return read, nil, err
		}
	}
	settings, notes := carried.Settings(read, instead)
	f.follow(read)
	if why != nil {
		notes = slices.Insert(notes, 0, fmt.Sprintf("the gateway's configuration could not be read (%v), and its defaults are assumed: PolicyExceptions of no namespace count, every policy is the gateway's, and only kube-system and quaymaster are excluded; give it with --gateway-config FILE", why))
	}
	return settings, notes, nil
}

// follow refreshes the trusted root from the gateway's source.
func (f *Flags) follow(read config.Configuration) {
	if read.Trust.Refresh && f.TrustedRoot == "" && !f.Offline {
		f.RefreshTrust = true
	}
}

// fromCluster reads the inputs of a cluster's gateway.
func (r reading) fromCluster(ctx context.Context) (*Inputs, error) {
	var read material
	var err error
	read.known, err = LoadResources(r.t, r.Resources)
	if err != nil {
		return nil, err
	}
	read.root, err = command.OptionalFile("--trusted-root", r.TrustedRoot)
	if err != nil {
		return nil, err
	}
	reader, notes, err := r.OpenCluster(ctx, r.t, r.clock)
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		r.t.Warn(note)
	}
	from, err := r.admitted(ctx, r.t, reader, read)
	if err != nil {
		reader.Close()
		return nil, err
	}
	for _, text := range reader.Texts() {
		from.asksUser = from.asksUser || asksUser(text)
	}
	return from, nil
}
