package gateway

import (
	"log/slog"
	"net"
	"net/netip"

	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/webhook/peers"
)

// join registers this replica with the others; the addresses are known by now.
func (g *assembly) join() error {
	if g.cluster == nil || g.configuration.Peers.Disabled {
		return nil
	}
	address := g.peerAddress()
	if address == "" {
		g.log.Info("other replicas are not asked: nobody said where they would find this one (POD_IP, peers.address)")
		return nil
	}
	if c := g.configuration.Certificate; c.CertificateFile != "" && c.CAFile == "" {
		g.log.Warn("other replicas are not asked: nobody said which authority signed their certificate (certificate.caFile)")
		return nil
	}
	members, err := lease.NewMembers(lease.MembersOptions{
		Client: g.cluster.Client.Leases, Namespace: g.configuration.Namespace, Identity: g.options.Replica, Address: address,
		Failed: gateway.Warn(g.log, "the replicas cannot be told apart"),
	})
	g.members = members
	return err
}

// peerAddress is the address of this replica for the others; empty if there is none.
func (g *assembly) peerAddress() string {
	if g.configuration.Peers.Address != "" || g.options.Address == "" {
		return g.configuration.Peers.Address
	}
	_, port, err := net.SplitHostPort(g.server.Address().String())
	if err != nil {
		return ""
	}
	return net.JoinHostPort(g.options.Address, port)
}

// peers makes the client of other replicas.
func (g *assembly) peers(key []byte) (*peers.Client, error) {
	options := []peers.Option{peers.WithFailures(func(member string, err error) {
		g.log.Debug("a replica could not be asked", slog.String("member", member), slog.String("error", err.Error()))
	})}
	host, _, err := net.SplitHostPort(g.peerAddress())
	if err != nil {
		return nil, err
	}
	if address, err := netip.ParseAddr(host); err == nil && address.IsLoopback() {
		options = append(options, peers.WithLoopback()) // several replicas on one machine
	}
	client, err := peers.New(peers.Config{
		Key: key, Members: others{g.members}, Roots: g.certificates, ServerName: knownAs(g.configuration),
	}, options...)
	if err == nil {
		g.group.OnClose(client.Close)
		if g.records.Leader != nil {
			g.records.Leader.Meet(g.members, client)
		}
	}
	return client, err
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
