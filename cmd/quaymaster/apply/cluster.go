package apply

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/live"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
)

// liveCluster is the cluster of --cluster.
type liveCluster struct{ *live.Cluster }

// openCluster makes a client and discovers the served kinds.
func openCluster(t command.Terminal, f *applyFlags) (*liveCluster, error) {
	of := &f.setup.Cluster
	if err := of.Resolve(t); err != nil {
		return nil, err
	}
	client, err := cluster.NewClient(cluster.ClientOptions{
		Kubeconfig: t.Kubeconfig(of.Kubeconfig), Context: of.Context, Version: t.Version(),
	})
	if err != nil {
		return nil, fmt.Errorf("--cluster: %w", err)
	}
	opened, err := live.Open(client, f.namespace)
	if err != nil {
		return nil, fmt.Errorf("--cluster: %w", err)
	}
	return &liveCluster{opened}, nil
}

// answer serves the policies' look-ups from the cluster.
func (l *liveCluster) answer(options *engine.CompilerOptions, config *evaluation.Config) {
	options.ConfigMaps, options.Caller, options.Kinds = l, l, l
	options.Resources = engine.ClusterObjects{Objects: l.Objects}
	fromFiles := config.Labels
	config.Labels = func(namespace string) (map[string]string, bool) {
		if labels, ok := fromFiles(namespace); ok {
			return labels, true
		}
		return l.NamespaceLabels(namespace)
	}
}

// Service implements rulecontext.Caller.
func (*liveCluster) Service(ctx context.Context, call rulecontext.ServiceCall) (any, error) {
	return advice().Service(ctx, call)
}

// List implements trial.Live.
func (l *liveCluster) List(ctx context.Context, of cel.ResourceRef) (any, error) {
	list, err := engine.ClusterObjects{Objects: l.Objects}.List(ctx, of, nil)
	if err != nil {
		return nil, err
	}
	return list["items"], nil
}

// Call implements trial.Live.
func (l *liveCluster) Call(ctx context.Context, call rulecontext.APICall) (any, error) {
	return l.API(ctx, call)
}
