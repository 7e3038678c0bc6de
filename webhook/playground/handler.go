package playground

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/internal/fairqueue"
	"github.com/quaymaster/quaymaster/policy/suite/trial"
	"github.com/quaymaster/quaymaster/webhook/internal/page"
)

// Evaluator evaluates documents and reads nothing else; *trial.Offline implements it. It returns soon after the
// context ends.
type Evaluator interface {
	Evaluate(ctx context.Context, documents trial.Documents) (trial.Report, error)
}

// Config holds the settings of a Handler.
type Config struct {
	// Evaluator is required.
	Evaluator Evaluator
	// Timeout bounds an evaluation; 0 means DefaultTimeout.
	Timeout time.Duration
	// AnyHost serves requests by any name of this host, for listeners that others reach.
	AnyHost bool
}

// Handler serves the page and its API. It is safe for concurrent use.
type Handler struct {
	config   Config
	files    map[string]*page.File
	examples *page.File
	origin   *http.CrossOriginProtection
	queue    *fairqueue.Queue
	mux      *http.ServeMux
}

//go:embed static
var static embed.FS

// New makes a Handler.
func New(config Config) (*Handler, error) {
	if config.Evaluator == nil || config.Timeout < 0 {
		return nil, errors.New("playground: an evaluator is required, and a timeout must not be negative")
	}
	if config.Timeout == 0 {
		config.Timeout = DefaultTimeout
	}
	root, err := fs.Sub(static, "static")
	if err != nil {
		return nil, fmt.Errorf("playground: %w", err)
	}
	h := &Handler{config: config, origin: http.NewCrossOriginProtection(), mux: http.NewServeMux()}
	h.files, err = page.Load(root)
	if err != nil {
		return nil, fmt.Errorf("playground: %w", err)
	}
	h.examples, err = loadExamples()
	if err != nil {
		return nil, fmt.Errorf("playground: %w", err)
	}
	h.queue, err = fairqueue.New(fairqueue.Bounds{Total: seats})
	if err != nil {
		return nil, err
	}
	h.mux.HandleFunc("/{$}", reading(h.files["index.html"]))
	h.mux.HandleFunc("/assets/{name}", func(w http.ResponseWriter, r *http.Request) {
		if f := h.files["assets/"+r.PathValue("name")]; f != nil {
			reading(f)(w, r)
			return
		}
		http.NotFound(w, r)
	})
	h.mux.HandleFunc("/api/v1/examples", reading(h.examples))
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		page.Refuse(w, r, page.Problem{Status: http.StatusNotFound, Reason: "not-found", Message: "no such page; docs/playground.md lists them"})
	})
	return h, nil
}

// reading serves a file for reading alone.
func reading(f *page.File) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			page.Refuse(w, r, page.Problem{Status: http.StatusMethodNotAllowed, Reason: "wrong-method", Message: "use GET"})
			return
		}
		f.Serve(w, r, http.StatusOK)
	}
}

// ServeHTTP serves without authentication, on loopback unless Config has AnyHost. Requests that name another host are refused: their
// names' owners can point them at any address.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page.Guard(w.Header())
	if !h.config.AnyHost && !page.IsLoopback(r.Host) {
		http.Error(w, "this page is served on loopback only: use localhost or 127.0.0.1", http.StatusMisdirectedRequest)
		return
	}
	h.Serve(w, r, "")
}

// Serve serves a request by its path below the page's own, for a caller that is authenticated where required;
// empty means the only one. The caller sets the headers that confine the page.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, caller string) {
	if r.URL.Path == "/api/v1/evaluate" {
		h.evaluate(w, r, caller)
		return
	}
	h.mux.ServeHTTP(w, r)
}
