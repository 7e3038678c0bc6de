package lookups

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway"
)

// Cluster holds the clients of a gateway in a cluster.
type Cluster struct {
	Client  *cluster.Client
	Events  *record.Events // nil where no events are written
	Leader  *lease.Leader
	Held    cluster.Held   // the credentials for registries
	Defined gateway.Signal // a CustomResourceDefinition came, changed or went
}

// Options are the dependencies of Connect.
type Options struct {
	Configuration    config.Configuration
	Version, Replica string
	Group            *gateway.Group // receives the components that follow the cluster
	Log              *slog.Logger
}

// Connect prepares the look-ups in the cluster, or in files; there is no cluster then.
func Connect(o Options) (Lookups, error) {
	if o.Configuration.Standalone {
		return inFiles(newFiles()), nil
	}
	around, err := o.cluster()
	if err != nil || o.Configuration.Events.Disabled {
		return around, err
	}
	around.Cluster.Events, err = record.NewEvents(record.EventOptions{
		Client: around.Cluster.Client.Typed, Controller: "quaymaster.dev/gateway", Instance: o.Replica,
		Failed: gateway.Warn(o.Log, "an event was not written"),
	})
	if err != nil {
		return Lookups{}, err
	}
	o.Group.Add("events", gateway.Loop(around.Cluster.Events.Run))
	return around, nil
}

func (o Options) cluster() (Lookups, error) {
	c, k := o.Configuration, o.Configuration.Kubernetes
	client, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: k.Kubeconfig, Context: k.Context,
		QPS: float64(k.QPS), Burst: k.Burst, Version: o.Version})
	if err != nil {
		return Lookups{}, fmt.Errorf("the cluster cannot be reached (to run without one, set standalone: true): %w", err)
	}
	lookups, err := cluster.NewLookups(cluster.LookupOptions{
		Client: client.Typed, Credentials: client.Credentials, TTL: time.Duration(c.Ages.Secret),
	})
	if err != nil {
		return Lookups{}, err
	}
	o.Group.OnClose(lookups.Close)
	namespaces, err := cluster.NewNamespaces(cluster.NamespaceOptions{Client: client.Metadata, Failed: gateway.Warn(o.Log, "namespaces cannot be watched")})
	if err != nil {
		return Lookups{}, err
	}
	roles, err := cluster.NewRoles(cluster.RoleOptions{Client: client.Typed, Failed: gateway.Warn(o.Log, "role bindings cannot be watched")})
	if err != nil {
		return Lookups{}, err
	}
	leader, err := lease.NewLeader(lease.LeaderOptions{Client: client.Leases, Namespace: c.Namespace, Name: c.Lease(), Identity: o.Replica})
	if err != nil {
		return Lookups{}, err
	}
	o.Group.Require("namespaces", "the namespaces are not listed yet", namespaces)
	o.Group.Add("namespaces", gateway.Loop(namespaces.Run))
	o.Group.Add("roles", gateway.Loop(roles.Run))
	in := &Cluster{Client: client, Leader: leader, Held: cluster.Held{Lookups: lookups}}
	return inCluster(in, lookups, namespaces, roles), nil
}
