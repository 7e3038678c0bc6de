package engine

import (
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/registry"
)

// session is a registry client that counts its requests.
type session struct {
	*registry.Client
	meter *registry.Meter
	scope string
}

// NewSession returns a session of a client; scope names its credentials.
func NewSession(client *registry.Client, scope string) gate.Session {
	return NewTenantSession(client, scope, "")
}

// NewTenantSession returns a session that sends requests on behalf of a tenant; the client is
// shared with other tenants.
func NewTenantSession(client *registry.Client, scope, tenant string) gate.Session {
	meter := &registry.Meter{}
	return session{Client: client.For(registry.Caller{Tenant: tenant, Account: scope}, meter), meter: meter, scope: scope}
}

// Scope implements gate.Session.
func (s session) Scope() string { return s.scope }

// Cost implements gate.Session.
func (s session) Cost() gate.Cost {
	return costOf(s.meter)
}

func costOf(meter *registry.Meter) gate.Cost {
	cost := gate.Cost{Requests: meter.Requests(), CountedPulls: meter.Pulls(), Bytes: meter.Bytes(), RateLimitRemaining: -1}
	if left, ok := meter.Remaining(); ok {
		cost.RateLimitRemaining = left
	}
	return cost
}
