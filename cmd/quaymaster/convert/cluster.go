package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/listing"
	"github.com/quaymaster/quaymaster/cluster/live"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/equality"
	"github.com/quaymaster/quaymaster/policy/convert/review"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/scan"
)

const (
	// clusterQPS bounds the requests to the API server in a second: a check is no reason to slow down others.
	clusterQPS = 20
	// maxRunning bounds the objects of a cluster, of all kinds: those of a cluster of a thousand nodes.
	maxRunning = 200_000
	// maxRestarts bounds the lists of a kind that begin again, because they expired.
	maxRestarts = 3
)

// clusterFlags name the cluster whose objects are compared.
type clusterFlags struct{ flags setup.ClusterFlags }

func (f *clusterFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.flags.Use, "from-cluster", false, "evaluate all objects of a cluster (--context) that the policies match, too, with --check; nothing is changed")
	f.flags.RegisterFor(cmd, "--from-cluster")
}

// liveObjects reads a cluster.
type liveObjects struct {
	t       command.Terminal
	lister  *listing.Lister
	cluster *live.Cluster
	mutex   sync.Mutex // of the labels that the cluster holds
}

// labels returns the labels of a namespace.
func (l *liveObjects) labels(namespace string) (map[string]string, bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.cluster.NamespaceLabels(namespace)
}

func (f *clusterFlags) open(t command.Terminal) (*liveObjects, error) {
	if err := f.flags.Resolve(t); err != nil {
		return nil, err
	}
	client, err := cluster.NewClient(cluster.ClientOptions{
		Kubeconfig: t.Kubeconfig(f.flags.Kubeconfig), Context: f.flags.Context, QPS: clusterQPS, Burst: clusterQPS, Version: t.Version(),
	})
	if err != nil {
		return nil, fmt.Errorf("--from-cluster: %w", err)
	}
	l := &liveObjects{t: t}
	l.lister, err = listing.New(client)
	if err == nil {
		l.cluster, err = live.Open(client, "")
	}
	if err != nil {
		return nil, fmt.Errorf("--from-cluster: %w", err)
	}
	return l, nil
}

// lookups serve the policies' look-ups about the cluster's objects.
func (l *liveObjects) lookups() *equality.Live {
	return &equality.Live{ConfigMaps: l.cluster, Caller: l.cluster, Resources: engine.ClusterObjects{Objects: l.cluster.Objects}, Labels: l.labels}
}

// each compares the objects of each kind that policies match, page by page, with those policies.
func (l *liveObjects) each(ctx context.Context, progress *output.Progress, policies []review.Policy, checkers []*equality.Checker) error {
	var targets []policy.Target
	for _, c := range checkers {
		if c != nil {
			targets = append(targets, c.Targets()...)
		}
	}
	served, err := l.lister.Kinds(ctx)
	if err != nil {
		return fmt.Errorf("--from-cluster: %w", err)
	}
	read := 0
	for _, kind := range scan.KindsOf(targets, served) {
		var chosen []int
		for i, c := range checkers {
			if c != nil && policies[i].Error == "" && matches(c.Targets(), kind) {
				chosen = append(chosen, i)
			}
		}
		n, err := l.kind(ctx, kind, maxRunning-read, func(page []equality.Running, remaining int64) {
			read += len(page)
			progress.Print(fmt.Sprintf("compared for %d objects of the cluster; %s: %d to go", read, kind.Resource, remaining))
			each(len(chosen), func(n int) {
				i := chosen[n]
				if err := checkers[i].Live(ctx, page); err != nil {
					policies[i].Error = err.Error()
				}
			})
		})
		switch {
		case errors.Is(err, scan.ErrRefused): // equal on the objects that may be read says nothing of the others
			for _, i := range chosen {
				policies[i].Error = fmt.Sprintf("%s of the cluster: %v", kind, err)
			}
		case err != nil:
			return fmt.Errorf("--from-cluster: list %s: %w", kind, err)
		case n > 0 && read >= maxRunning:
			progress.Clear()
			l.t.Warn(fmt.Sprintf("the first %d objects of the cluster are compared, and no more", maxRunning))
			return nil
		}
	}
	return nil
}

func matches(targets []policy.Target, kind scan.Kind) bool {
	return slices.ContainsFunc(targets, func(t policy.Target) bool {
		return wildcard.Match(t.Kind, kind.Kind) && wildcard.Match(t.Group, kind.Group)
	})
}

// kind reads the pages of a kind, and returns the number of its objects.
func (l *liveObjects) kind(ctx context.Context, kind scan.Kind, most int, do func(page []equality.Running, remaining int64)) (n int, err error) {
	from, restarts := "", 0
	for n < most {
		page, err := l.lister.List(ctx, kind, from, scan.PageSize)
		if expired, ok := errors.AsType[*scan.ExpiredError](err); ok && restarts < maxRestarts {
			from, restarts = expired.Next, restarts+1
			continue
		}
		if err != nil {
			return n, err
		}
		for _, err := range page.Unreadable {
			l.t.Warn(err.Error())
		}
		objects := make([]equality.Running, 0, len(page.Objects))
		for _, object := range page.Objects[:min(len(page.Objects), most-n)] {
			one := equality.Running{Object: object, Resource: kind.Resource, ClusterScoped: !kind.Namespaced}
			if kind.Namespaced {
				one.NamespaceLabels, _ = l.labels(object.Namespace()) // unknown ones are none on both sides
			}
			objects = append(objects, one)
		}
		do(objects, page.Remaining)
		n += len(objects)
		from = page.Continue
		if from == "" {
			return n, nil
		}
	}
	return n, nil
}
