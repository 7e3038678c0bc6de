package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// clusterFlags name the cluster and the gateway's configuration.
type clusterFlags struct {
	context, kubeconfig, gatewayConfig string
}

func (f *clusterFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.context, "from-cluster", "", "kubeconfig `context` of a cluster: use the policies, mirrors and keys of its gateway")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` for --from-cluster (default: KUBECONFIG or ~/.kube/config)")
	flags.StringVar(&f.gatewayConfig, "gateway-config", "", "gateway configuration `file`, in place of the ConfigMap quaymaster/quaymaster")
}

func (f *clusterFlags) check(setup *setupFlags) error {
	switch {
	case f.context == "" && f.kubeconfig != "":
		return errors.New("--kubeconfig is for --from-cluster CONTEXT")
	case f.context == "" && f.gatewayConfig != "":
		return errors.New("--gateway-config is for --from-cluster CONTEXT, and for quaymaster bundle create")
	case f.context != "" && setup.offline:
		return errors.New("--offline opens no connection, and --from-cluster needs one: export a bundle first, by quaymaster bundle create --from-cluster")
	}
	return nil
}

// open makes a reader of the cluster.
func (f *setupFlags) open(ctx context.Context, t command.Terminal, clock func() time.Time) (*gateway.Reader, []string, error) {
	kubeconfig := t.Kubeconfig(f.cluster.kubeconfig)
	version := t.Version()
	client, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: kubeconfig, Context: f.cluster.context, Version: version})
	if err != nil {
		return nil, nil, fmt.Errorf("--from-cluster: %w", err)
	}
	settings, notes, err := f.settings(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	settings.Kubernetes = config.Kubernetes{Kubeconfig: kubeconfig, Context: f.cluster.context}
	settings.Policies.Folders, settings.Mirrors.Files = f.policies, f.mirrors
	reader, err := gateway.NewReader(ctx, settings, gateway.ReaderOptions{Version: version, Now: clock})
	if err != nil {
		return nil, nil, fmt.Errorf("--from-cluster %s: %w", f.cluster.context, err)
	}
	return reader, notes, nil
}

// settings reads the gateway's settings, and returns notes on those that have no effect
// here. A nil client requires the settings in a file.
func (f *setupFlags) settings(ctx context.Context, client *cluster.Client) (config.Configuration, []string, error) {
	instead := config.Given{Policies: len(f.policies) > 0, Mirrors: len(f.mirrors) > 0, TrustedRoot: f.trustedRoot != ""}
	if f.cluster.gatewayConfig != "" {
		read, err := config.Load(f.cluster.gatewayConfig)
		if err != nil {
			return read, nil, fmt.Errorf("--gateway-config: %w", err)
		}
		settings, notes := read.Carried(instead)
		f.follow(read)
		return settings, notes, nil
	}
	read, why := config.Settings(ctx, client, "")
	if why != nil {
		var err error
		read, err = config.Load("")
		if err != nil {
			return read, nil, err
		}
	}
	settings, notes := read.Carried(instead)
	f.follow(read)
	if why != nil {
		notes = slices.Insert(notes, 0, fmt.Sprintf("the gateway's configuration could not be read (%v), and its defaults are assumed: PolicyExceptions of no namespace count, every policy is the gateway's, and only kube-system and quaymaster are excluded; give it with --gateway-config FILE", why))
	}
	return settings, notes, nil
}

// follow refreshes the trusted root from the gateway's source.
func (f *setupFlags) follow(read config.Configuration) {
	if read.Trust.Refresh && f.trustedRoot == "" && !f.offline {
		f.refreshTrust = true
	}
}

// fromCluster reads the inputs of a cluster's gateway.
func (f *setupFlags) fromCluster(ctx context.Context, t command.Terminal, clock func() time.Time) (*foundation, error) {
	known, err := loadResources(f.resources)
	if err != nil {
		return nil, err
	}
	root, err := command.OptionalFile("--trusted-root", f.trustedRoot)
	if err != nil {
		return nil, err
	}
	reader, notes, err := f.open(ctx, t, clock)
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		t.Warn(note)
	}
	from, err := f.asAdmitted(ctx, t, reader, root, known, nil)
	if err != nil {
		reader.Close()
		return nil, err
	}
	for _, text := range reader.Texts() {
		from.asksUser = from.asksUser || asksUser(text)
	}
	return from, nil
}
