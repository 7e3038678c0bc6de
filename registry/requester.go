package registry

import (
	"time"

	"github.com/quaymaster/quaymaster/internal/fairqueue"
	"github.com/quaymaster/quaymaster/registry/internal/guard"
	"github.com/quaymaster/quaymaster/registry/internal/login"
	"github.com/quaymaster/quaymaster/registry/internal/memory"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// requester sends the requests of a Client: it selects the credential and the connection, keeps the
// limits, tries again, and turns failures into an Error. Copies share all pointers.
type requester struct {
	userAgent string
	authentication
	connections
	pacing
	caller Caller
	meter  *Meter
	seen   func(host string, status int, took time.Duration) // may be nil
	from   Provenance
}

// authentication selects the credential of a request, and the hosts that may receive it.
type authentication struct {
	credentials credentials
	realms      guard.Realms
	tokens      *login.Tokens
	working     *memory.Map[int] // the credential that works for a repository, where it is not the first
}

func newTurns() *memory.Map[int] { return memory.New[int](maxMissing, missingAge) }

// connections selects the scheme and the transport to a host.
type connections struct {
	schemes    schemes
	transports transports
	loopback   []string // additional hosts that may resolve to a loopback address
}

// pacing bounds how many requests run, and for how long.
type pacing struct {
	timeout     time.Duration
	backoff     time.Duration
	concurrency *fairqueue.Queue
	limiter     *ratelimit.Limiter
	background  bool // its requests can wait
}
