package ui

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/webhook/internal/page"
)

// Authenticator resolves a token to a user. A user without a name and without an error means that
// the token is not valid. An error means that the token could not be verified.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (policy.User, error)
}

// Authorizer decides whether a user may see the dashboard. An error means that the decision could
// not be made.
type Authorizer interface {
	MayRead(ctx context.Context, user policy.User) (bool, error)
}

// Playground is a page that evaluates what its users write; *playground.Handler implements it.
type Playground interface {
	// Serve serves a request by its path below the page's own. The caller is the user; empty without tokens.
	Serve(w http.ResponseWriter, r *http.Request, caller string)
}

// Config holds the required settings of a Handler.
type Config struct {
	// Inventory is the source of the dashboard's data.
	Inventory *inventory.Inventory
	// Authenticator is nil only WithoutTokens.
	Authenticator Authenticator
}

type options struct {
	authorizer Authorizer // nil: every authenticated user may read
	everybody  bool
	leader     Leader   // nil: this replica always answers
	policies   Policies // nil: only their results are known
	playground Playground
	explain    func(namespace, image string, isCopy bool) string
}

// Option changes a default of a Handler.
type Option func(*options) error

// WithAuthorizer restricts access to authorised users. It is required if the Authenticator accepts
// every user of a cluster.
func WithAuthorizer(a Authorizer) Option {
	return func(o *options) error {
		if a == nil {
			return errors.New("authorizer must not be nil")
		}
		o.authorizer = a
		return nil
	}
}

// WithExplain adds to each image of a decision the command that explains its verdict to a user, with
// its arguments quoted for a shell; empty for none.
func WithExplain(command func(namespace, image string, isCopy bool) string) Option {
	return func(o *options) error {
		if command == nil {
			return errors.New("command must not be nil")
		}
		o.explain = command
		return nil
	}
}

// WithPlayground serves a playground below /playground/, to the users of the dashboard.
func WithPlayground(p Playground) Option {
	return func(o *options) error {
		if p == nil {
			return errors.New("playground must not be nil")
		}
		o.playground = p
		return nil
	}
}

// WithoutTokens disables authentication. The listener must be on loopback; requests that name
// another host are refused.
func WithoutTokens() Option {
	return func(o *options) error {
		o.everybody = true
		return nil
	}
}

// Handler serves the dashboard. It is safe for concurrent use.
type Handler struct {
	config Config
	options
	files  map[string]*page.File
	mux    *http.ServeMux
	shown  *http.ServeMux // serves other replicas
	places chan struct{}  // holds one element per request in flight
}

// New makes a Handler.
func New(config Config, with ...Option) (*Handler, error) {
	var o options
	for _, option := range with {
		if err := option(&o); err != nil {
			return nil, fmt.Errorf("ui: %w", err)
		}
	}
	if config.Inventory == nil || (config.Authenticator == nil) != o.everybody {
		return nil, errors.New("ui: an inventory is required, and an authenticator unless tokens are disabled")
	}
	if o.everybody && o.authorizer != nil {
		return nil, errors.New("ui: an authorizer requires tokens")
	}
	files, err := load()
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	h := &Handler{config: config, options: o, files: files, mux: http.NewServeMux(), shown: http.NewServeMux(), places: make(chan struct{}, maxAtOnce)}
	if h.playground != nil {
		h.linkPlayground()
	}
	h.register()
	return h, nil
}

//go:embed static
var static embed.FS

func load() (map[string]*page.File, error) {
	root, err := fs.Sub(static, "static")
	if err != nil {
		return nil, err
	}
	return page.Load(root)
}

// register registers the paths. All pages are one document, which renders according to its URL.
func (h *Handler) register() {
	for path, route := range h.routes() {
		h.mux.Handle(apiPrefix+path, h.serve(route))
		h.shown.Handle(apiPrefix+path, h.view(route))
	}
	h.mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		page.Refuse(w, r, page.Problem{Status: http.StatusNotFound, Reason: "not-found", Message: "no such API resource; docs/dashboard.md lists them"})
	})
	for _, path := range []string{"/{$}", "/images", "/images/{id}", "/decisions", "/decisions/{id}", "/policies", "/policy"} {
		h.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { h.files["index.html"].Serve(w, r, http.StatusOK) })
	}
	h.mux.HandleFunc("/assets/{name}", func(w http.ResponseWriter, r *http.Request) {
		if f := h.files["assets/"+r.PathValue("name")]; f != nil {
			f.Serve(w, r, http.StatusOK)
			return
		}
		http.NotFound(w, r)
	})
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { h.files["index.html"].Serve(w, r, http.StatusNotFound) })
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page.Guard(w.Header())
	if h.everybody && !page.IsLoopback(r.Host) {
		http.Error(w, "this dashboard is served on loopback only: use localhost or 127.0.0.1", http.StatusMisdirectedRequest)
		return
	}
	if h.playground != nil && strings.HasPrefix(r.URL.Path, playgroundPath) {
		h.play(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		page.Refuse(w, r, page.Problem{Status: http.StatusMethodNotAllowed, Reason: "wrong-method", Message: "the dashboard is read only: use GET"})
		return
	}
	h.mux.ServeHTTP(w, r)
}
