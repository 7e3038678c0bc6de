package registry

import (
	"context"
	"strconv"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/fair"
	"github.com/quaymaster/quaymaster/registry/allowance"
)

// Caller is in whose name registries are asked.
type Caller struct {
	// Tenant shares what may be asked at once with others: none takes all of it, and
	// who asks little does not wait for who asks much. "" is nobody in particular,
	// for whom nothing is kept back.
	Tenant string
	// Account names the credentials, and is none: registries limit each by itself.
	Account string
}

// Anonymous is the Account of callers without credentials, who share a limit.
const Anonymous = "anonymous"

// For returns a Client that is With(meter) and asks in the name of caller.
func (c *Client) For(caller Caller, meter *Meter) *Client {
	named := c.With(meter)
	named.caller = caller
	return named
}

// enter waits until the host may be asked, then for a place among those who ask at
// once: who waits for the former holds none of the latter.
func (c *Client) enter(ctx context.Context, account allowance.Account) (ticket *allowance.Ticket, leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	waiting := ctx
	if deadline, bounded := cache.CallerDeadline(ctx); bounded { // shared work has more time, and no caller waits so long
		var cancel context.CancelFunc
		waiting, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	for {
		ticket, err = c.allowance.Enter(waiting, account, c.background)
		if err != nil {
			return nil, nil, err
		}
		hold, err := c.lanes.Enter(ctx, fair.Claim{Tenant: c.caller.Tenant, Host: account.Host, Alone: c.caller.Tenant == ""})
		if err != nil {
			ticket.Leave()
			return nil, nil, err
		}
		leave = func() {
			hold.Leave()
			ticket.Leave()
		}
		if ticket.Holds() {
			return ticket, leave, nil
		}
		leave() // another was told 429 while this one waited
	}
}

// Apart names the tenant if it has its share of what may be asked at once of the
// repository's registry: nobody else should wait for what it asks then. "" if not.
func (c *Client) Apart(repository image.Repository) string {
	if c.caller.Tenant == "" || !c.lanes.Crowded(fair.Claim{Tenant: c.caller.Tenant, Host: c.schemes.origin(repository).Host}) {
		return ""
	}
	return c.caller.Tenant
}

// account is whose requests a registry counts together: a credential that has reached its
// limit keeps neither the others nor anonymous requests from being sent.
func (c *Client) account(q question, host string) allowance.Account {
	name := c.caller.Account
	switch {
	case q.turn == anonymous:
		name = Anonymous
	case q.turn > 0:
		name += "\n" + strconv.Itoa(q.turn)
	}
	return allowance.Account{Host: host, Name: name}
}
