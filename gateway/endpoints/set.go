package endpoints

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// Set holds the endpoints of a server by their paths. Until an endpoint is active, the response is
// an HTTP error, and the API server applies the webhook's own failure policy. That was made from the
// policies, which are not loaded here yet.
type Set struct {
	paths     []string
	endpoints map[string]*placeholder
}

// NewSet makes inactive endpoints. Only those at paths may require client certificates; internal
// ones authenticate their callers themselves.
func NewSet(paths []string, internal ...string) *Set {
	s := &Set{paths: paths, endpoints: map[string]*placeholder{}}
	for _, path := range append(internal, paths...) {
		s.endpoints[path] = &placeholder{}
	}
	return s
}

// Served returns the endpoints for a server; nil for none. If callers is not nil, only its clients
// get responses at the listed paths, of those of NewSet; none means all of them.
func (s *Set) Served(callers *webhook.Callers, at []string) map[string]webhook.Endpoint {
	if s == nil {
		return nil
	}
	if len(at) == 0 {
		at = s.paths
	}
	served := map[string]webhook.Endpoint{}
	for path, endpoint := range s.endpoints {
		e := webhook.Endpoint{Handler: endpoint, Below: path == configuration.ProbePath}
		if slices.Contains(s.paths, path) && slices.Contains(at, path) {
			e.Callers = callers
		}
		served[path] = e
	}
	return served
}

// Activate has the endpoint at a path serve.
func (s *Set) Activate(path string, handler http.Handler) error {
	endpoint, ok := s.endpoints[path]
	if !ok || handler == nil {
		return fmt.Errorf("activate endpoint %s: want a handler and one of the paths %s", path, strings.Join(slices.Sorted(maps.Keys(s.endpoints)), ", "))
	}
	endpoint.handler.Store(&handler)
	return nil
}

// placeholder is an endpoint that may not be active yet.
type placeholder struct{ handler atomic.Pointer[http.Handler] }

// ServeHTTP implements http.Handler.
func (p *placeholder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler := p.handler.Load()
	if handler == nil {
		http.Error(w, "the gateway is starting; try again in a moment", http.StatusServiceUnavailable)
		return
	}
	(*handler).ServeHTTP(w, r)
}

// Checks returns the checks of /readyz: of the certificate and of the requirements.
func Checks(certificate func() error, requirements []gateway.Requirement) []webhook.Check {
	checks := []webhook.Check{{Name: "certificate", Ready: certificate}}
	for _, r := range requirements {
		checks = append(checks, webhook.Check{Name: r.Name, Ready: func() error {
			select {
			case <-r.Met:
				return nil
			default:
				return errors.New(r.Why)
			}
		}})
	}
	return checks
}

// AllReady evaluates the checks of /readyz, except a drain.
func AllReady(checks []webhook.Check) func() bool {
	return func() bool {
		return !slices.ContainsFunc(checks, func(c webhook.Check) bool { return c.Ready() != nil })
	}
}
