package webhook

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
)

// Check is one thing that the gateway needs before it can decide.
type Check struct {
	// Name is a word, as in "policies".
	Name string
	// Ready says why not; nil is ready. It must be quick, and its text may be read
	// by whoever reaches the plain server.
	Ready func() error
}

const drain = "drain"

func checkNames(checks []Check) error {
	seen := map[string]bool{drain: true}
	for _, c := range checks {
		if c.Name == "" || strings.ContainsAny(c.Name, " \n") || c.Ready == nil {
			return fmt.Errorf("check %q: want a word and a function", c.Name)
		}
		if seen[c.Name] {
			return fmt.Errorf("check %q: the name is taken", c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// health answers what is asked of the plain server.
func (s *Server) health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", s.config.Metrics)
	return mux
}

// readyz lists each check on a line of its own, always in the same order, and
// why it is not ready.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	status, lines := http.StatusOK, strings.Builder{}
	for _, check := range append([]Check{{Name: drain, Ready: s.staying}}, s.config.Checks...) {
		if err := check.ask(); err != nil {
			status = http.StatusServiceUnavailable
			fmt.Fprintf(&lines, "not ready: %s: %s\n", check.Name, oneLine(err.Error()))
			continue
		}
		fmt.Fprintf(&lines, "ok: %s\n", check.Name)
	}
	say(w, status, lines.String())
}

func (s *Server) staying() error {
	if s.draining.Load() {
		return errLeaving
	}
	return nil
}

// ask calls the check; one that panics is not ready.
func (c Check) ask() (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("internal error: %v", what)
		}
	}()
	return c.Ready()
}

// oneLine makes a text fit a line of a list.
func oneLine(text string) string {
	return bounded(strings.Join(strings.Fields(text), " "), maxLine)
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// Who asked may be gone; there is nobody to tell.
	_, _ = w.Write([]byte(text))
}

// profiles answers net/http/pprof's paths.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
