package replicas

import (
	"context"
	"log/slog"
	"net"
	"net/netip"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/webhook/peers"
)

// Config holds the dependencies of Replicas.
type Config struct {
	// Disabled leaves this replica alone.
	Disabled bool
	// Unverifiable: the others do not have the authority of the certificate of a replica.
	Unverifiable        bool
	Leases              coordination.LeasesGetter
	Namespace, Identity string
	// Roots verify the certificates of the others, which are for ServerName.
	Roots      peers.Roots
	ServerName string
	// Leader shows the dashboard of the leader; nil where each replica shows its own.
	Leader *reporting.LeaderView
	Log    *slog.Logger
}

// Replicas are the replicas of the gateway.
type Replicas struct {
	config  Config
	address string
	members *lease.Members // nil where other replicas are not used
}

// New makes Replicas without any other.
func New(c Config) *Replicas { return &Replicas{config: c} }

// Join registers this replica with the others; address is its own for them, empty if there is none.
func (r *Replicas) Join(address string) error {
	log := r.config.Log
	switch {
	case r.config.Disabled:
		return nil
	case address == "":
		log.Info("other replicas are not queried: this one has no address for them; set POD_IP or peers.address")
		return nil
	case r.config.Unverifiable:
		log.Warn("other replicas are not queried: the authority of their certificate is unknown; set certificate.caFile")
		return nil
	}
	members, err := lease.NewMembers(lease.MembersOptions{
		Client: r.config.Leases, Namespace: r.config.Namespace, Identity: r.config.Identity, Address: address,
		Failed: gateway.Warn(log, "the Lease of this replica cannot be written or those of the others listed"),
	})
	r.address, r.members = address, members
	return err
}

// Client makes the client of the other replicas, which must be closed; nil where they are not used.
// key authenticates its requests.
func (r *Replicas) Client(key []byte) (*peers.Client, error) {
	if r.members == nil {
		return nil, nil
	}
	options := []peers.Option{peers.WithFailures(func(member string, err error) {
		r.config.Log.Debug("a replica could not be queried", slog.String("member", member), slog.String("error", err.Error()))
	})}
	host, _, err := net.SplitHostPort(r.address)
	if err != nil {
		return nil, err
	}
	if address, err := netip.ParseAddr(host); err == nil && address.IsLoopback() {
		options = append(options, peers.WithLoopback()) // several replicas on one machine
	}
	client, err := peers.New(peers.Config{
		Key: key, Members: others{r.members}, Roots: r.config.Roots, ServerName: r.config.ServerName,
	}, options...)
	if err == nil && r.config.Leader != nil {
		r.config.Leader.Meet(r.members, client)
	}
	return client, err
}

// Run registers this replica until ctx ends.
func (r *Replicas) Run(ctx context.Context) {
	if r.members != nil {
		r.members.Run(ctx)
	}
}

// Sweep removes the remains of former replicas until ctx ends, on the leader.
func (r *Replicas) Sweep(ctx context.Context) {
	if r.members != nil {
		r.members.Sweep(ctx)
	}
}

// others are the addresses of the other replicas.
type others struct{ members *lease.Members }

// Others implements peers.Members.
func (o others) Others() []string {
	var list []string
	for _, member := range o.members.Others() {
		list = append(list, member.Address)
	}
	return list
}
