package health

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/clock"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/carried"
)

// Reader reads the state of a gateway.
type Reader struct {
	// Client has the permissions of the user.
	Client *cluster.Client
	// Namespace is the gateway's.
	Namespace string
	// Policies reads the policies of the cluster.
	Policies func(ctx context.Context) ([]Policy, error)
	// Now is the clock of this machine.
	Now func() time.Time
}

// Read reads the state. The error is that of an API server that does not respond, or does not accept the
// user; any other failure is in the part that it concerns.
func (r Reader) Read(ctx context.Context) (*State, error) {
	at, err := clock.Read(ctx, r.Client.Config(), r.Now)
	if err != nil {
		return nil, err
	}
	s := &State{Namespace: r.Namespace, Time: at.Server.Truncate(time.Second), Kubernetes: at.Version}
	s.Clocks = Clocks{AheadSeconds: seconds(at.Ahead), AccuracySeconds: seconds(at.Accuracy)}
	s.Settings = r.settings(ctx)
	var members []Replica
	var all sync.WaitGroup
	all.Go(func() { s.Policies = r.policies(ctx) })
	all.Go(func() { s.Webhooks = r.webhooks(ctx, &s.Certificate) })
	all.Go(func() { s.Leaders, s.Clocks.Replicas, members = r.leases(ctx) })
	all.Go(func() {
		s.Replicas = r.replicas(ctx)
		s.Permissions = r.permissions(ctx, s.Settings.Value, s.Replicas)
	})
	all.Wait()
	s.expectLeases()
	if s.Replicas.Unknown == "" && len(s.Replicas.Deployments) == 0 {
		s.Replicas.Items = append(s.Replicas.Items, members...)
	}
	s.readMetrics()
	return s, nil
}

// seconds rounds to tenths.
func seconds(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() }

// settings reads the gateway's configuration from its ConfigMap.
func (r Reader) settings(ctx context.Context) Settings {
	read, err := carried.Read(ctx, r.Client, r.Namespace)
	if err == nil {
		return Settings{Mode: read.Mode, Value: read}
	}
	s := Settings{Unread: Unread{Unknown: "the gateway's settings cannot be used: " + err.Error()}}
	switch {
	case errors.Is(err, cluster.ErrForbidden):
		s.Unread = Unread{
			Unknown: "your user has no permission to get configmaps in the namespace " + r.Namespace + ", where the gateway's settings are",
			Fix:     "grant your user get on configmaps in the namespace " + r.Namespace + " (docs/troubleshooting.md#permissions-of-status-and-doctor)",
		}
	case errors.Is(err, cluster.ErrNotFound):
		s.Unknown = "there is no ConfigMap " + r.Namespace + "/quaymaster with the gateway's settings; the defaults are assumed"
		s.Fix = "name the gateway's namespace with -n; a gateway that reads a file of its own has no ConfigMap"
	case errors.Is(err, cluster.ErrUnavailable):
		s.Fix = "check the connection to the API server, and run the command again"
	default:
		s.Fix = "correct gateway.yaml in the ConfigMap " + r.Namespace + "/quaymaster, or use the quaymaster program of the gateway's version"
	}
	s.Value, err = config.Load("")
	if err != nil {
		s.Unknown += "; " + err.Error()
	}
	return s
}

// policies reads the policies, and counts them by kind.
func (r Reader) policies(ctx context.Context) Policies {
	list, err := r.Policies(ctx)
	if err != nil {
		return Policies{Kinds: []PolicyKind{}, Unread: Unread{
			Unknown: "the policies could not be read: " + err.Error(),
			Fix:     "run quaymaster policy list, which has the same permissions (docs/troubleshooting.md#permissions-of-status-and-doctor)",
		}}
	}
	p := Policies{Kinds: []PolicyKind{}, Items: list}
	places := map[string]int{}
	for _, one := range list {
		i, ok := places[one.Kind]
		if !ok {
			i = len(p.Kinds)
			places[one.Kind] = i
			p.Kinds = append(p.Kinds, PolicyKind{Kind: one.Kind})
		}
		switch one.Ready {
		case "True":
			p.Kinds[i].Ready++
		case "False":
			p.Kinds[i].NotReady++
		default:
			p.Kinds[i].Unknown++
		}
	}
	return p
}
