package registry

import (
	"context"
	"strconv"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/fairqueue"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// Caller identifies the tenant of requests.
type Caller struct {
	// Tenant shares the concurrency of a registry with other tenants: no tenant can use all of
	// it, and a tenant with few requests does not wait for one with many. "" is no tenant, and
	// has no reserved share.
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

// enter waits for the rate limit of the host, then for a concurrency seat: a request that
// waits for the rate limit holds no seat.
func (r *requester) enter(ctx context.Context, account ratelimit.Account) (ticket *ratelimit.Permit, leave func(), err error) {
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
		ticket, err = r.limiter.Enter(waiting, account, r.background)
		if err != nil {
			return nil, nil, err
		}
		hold, err := seat(ctx, r.concurrency, fairqueue.Claim{Tenant: r.caller.Tenant, Host: account.Host, Alone: r.caller.Tenant == ""})
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
		leave() // another request got 429 during the wait
	}
}

// seat waits for a concurrency seat, unless the request may prove needless.
func seat(ctx context.Context, concurrency *fairqueue.Queue, claim fairqueue.Claim) (fairqueue.Hold, error) {
	if ctx.Value(needlessKey{}) == nil {
		return concurrency.Enter(ctx, claim)
	}
	hold, _, ok := concurrency.TryEnter(claim)
	if !ok {
		return hold, errNoSeat
	}
	return hold, nil
}

// Apart names the tenant if it has used up its share of the registry's concurrency: other
// tenants must not wait for its requests. "" otherwise.
func (c *Client) Apart(repository image.Repository) string {
	if c.caller.Tenant == "" || !c.concurrency.Crowded(fairqueue.Claim{Tenant: c.caller.Tenant, Host: c.schemes.origin(repository).Host}) {
		return ""
	}
	return c.caller.Tenant
}

// account is the registry's unit of rate limiting: a credential that has reached its limit
// blocks neither other credentials nor anonymous requests.
func (r *requester) account(q request, host string) ratelimit.Account {
	name := r.caller.Account
	switch {
	case q.turn == anonymous:
		name = Anonymous
	case q.turn > 0:
		name += "\n" + strconv.Itoa(q.turn)
	}
	return ratelimit.Account{Host: host, Name: name}
}
