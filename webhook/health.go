package webhook

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
)

// Check is one condition of readiness.
type Check struct {
	// Name is a single word, as in "policies".
	Name string
	// Ready returns the reason why the condition does not hold, or nil. It must be quick. Every
	// client of the plain server can read its text.
	Ready func() error
}

const drain = "drain"

func checkNames(checks []Check) error {
	seen := map[string]bool{drain: true}
	for _, c := range checks {
		if c.Name == "" || strings.ContainsAny(c.Name, " \n") || c.Ready == nil {
			return fmt.Errorf("check %q: a name without spaces and a function are required", c.Name)
		}
		if seen[c.Name] {
			return fmt.Errorf("check %q: duplicate name", c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// health serves the plain server's paths.
func (s *Server) health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", s.config.Metrics)
	return mux
}

// readyz lists each check on its own line, always in the same order, with the reason if it fails.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	status, lines := http.StatusOK, strings.Builder{}
	for _, check := range append([]Check{{Name: drain, Ready: s.checkDrain}}, s.config.Checks...) {
		if err := check.run(); err != nil {
			status = http.StatusServiceUnavailable
			fmt.Fprintf(&lines, "not ready: %s: %s\n", check.Name, oneLine(err.Error()))
			continue
		}
		fmt.Fprintf(&lines, "ok: %s\n", check.Name)
	}
	writeText(w, status, lines.String())
}

func (s *Server) checkDrain() error {
	if s.draining.Load() {
		return errShutdown
	}
	return nil
}

// run calls the check. A check that panics is not ready.
func (c Check) run() (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("internal error: %v", what)
		}
	}()
	return c.Ready()
}

// oneLine turns a text into a single line of bounded length.
func oneLine(text string) string {
	return bounded(strings.Join(strings.Fields(text), " "), maxLine)
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// Ignored: the client may have disconnected, and the error has no recipient.
	_, _ = w.Write([]byte(text))
}

// profiles serves the paths of net/http/pprof.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
