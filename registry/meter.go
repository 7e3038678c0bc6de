package registry

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// Meter sums the cost of requests. The zero value is ready; one Meter may be used by many
// goroutines. The methods of the nil Meter count nothing.
type Meter struct {
	requests, pulls, bytes atomic.Int64
	remaining              atomic.Int64 // one more than the rest of the limit; 0: unknown
}

// Requests returns how many HTTP requests were made, those for tokens and
// those after redirects and retries included.
func (m *Meter) Requests() int64 { return m.requests.Load() }

// Pulls returns the number of manifests fetched with GET: a registry with a pull limit
// counts these.
func (m *Meter) Pulls() int64 { return m.pulls.Load() }

// Bytes returns how many bytes of bodies were read.
func (m *Meter) Bytes() int64 { return m.bytes.Load() }

// Remaining returns the last "ratelimit-remaining" that a registry sent; false
// when none did.
func (m *Meter) Remaining() (int64, bool) {
	n := m.remaining.Load()
	return n - 1, n > 0
}

func (m *Meter) count() {
	if m != nil {
		m.requests.Add(1)
	}
}

// answered looks at the head of an answer of the registry itself.
func (m *Meter) answered(q *http.Request, header http.Header, status int) {
	if m == nil {
		return
	}
	if q.Method == http.MethodGet && status < http.StatusBadRequest && strings.Contains(q.URL.Path, "/manifests/") {
		m.pulls.Add(1)
	}
	if n, ok := ratelimit.Remaining(header); ok {
		m.remaining.Store(n + 1)
	}
}

func (m *Meter) read(n int) {
	if m != nil {
		m.bytes.Add(int64(n))
	}
}
