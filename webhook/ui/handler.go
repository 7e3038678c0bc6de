package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report/inventory"
)

// Authenticator knows whose token it is. There are three results: a user, who is
// known; one without a name and no error, who is not; and an error, for could-not-look.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (policy.User, error)
}

// Authorizer says whether a user may see the dashboard. An error means that nobody
// could say.
type Authorizer interface {
	MayRead(ctx context.Context, user policy.User) (bool, error)
}

// Config is what a Handler cannot do without.
type Config struct {
	// Inventory is what is shown.
	Inventory *inventory.Inventory
	// Authenticator is nil only WithoutTokens.
	Authenticator Authenticator
}

type options struct {
	authorizer Authorizer // nil: whoever is known may read
	everybody  bool
	leader     Leader // nil: nobody else is asked
}

// Option changes a default of a Handler.
type Option func(*options) error

// WithAuthorizer asks who may read, of those whom the Authenticator knows. For one that
// knows a whole cluster that is needed.
func WithAuthorizer(a Authorizer) Option {
	return func(o *options) error {
		if a == nil {
			return errors.New("authorizer: want one")
		}
		o.authorizer = a
		return nil
	}
}

// WithoutTokens shows everything to who can reach the listener, which must be on
// loopback: requests that name another host are refused.
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
	files  map[string]*file
	mux    *http.ServeMux
	shown  *http.ServeMux // to other replicas
	places chan struct{}  // has one for each question at work
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
		return nil, errors.New("ui: want an inventory, and an authenticator or nobody who needs a token")
	}
	if o.everybody && o.authorizer != nil {
		return nil, errors.New("ui: without tokens nobody is known who could be authorised")
	}
	files, err := load()
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	h := &Handler{config: config, options: o, files: files, mux: http.NewServeMux(), shown: http.NewServeMux(), places: make(chan struct{}, maxAtOnce)}
	h.route()
	return h, nil
}

// route says what is where. The pages are one document, which shows what its address
// says.
func (h *Handler) route() {
	for path, question := range h.questions() {
		h.mux.Handle(apiPrefix+path, h.ask(question))
		h.shown.Handle(apiPrefix+path, h.show(question))
	}
	h.mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, problem{http.StatusNotFound, "not-found", "there is no such part of the API; docs/dashboard.md lists them"})
	})
	for _, page := range []string{"/{$}", "/images", "/images/{id}", "/decisions", "/policies"} {
		h.mux.HandleFunc(page, func(w http.ResponseWriter, r *http.Request) { h.files["index.html"].serve(w, r, http.StatusOK) })
	}
	h.mux.HandleFunc("/assets/{name}", func(w http.ResponseWriter, r *http.Request) {
		if f := h.files["assets/"+r.PathValue("name")]; f != nil {
			f.serve(w, r, http.StatusOK)
			return
		}
		http.NotFound(w, r)
	})
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { h.files["index.html"].serve(w, r, http.StatusNotFound) })
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	guard(w.Header())
	if h.everybody && !isLoopback(r.Host) {
		http.Error(w, "this dashboard is on loopback: ask for it by localhost or 127.0.0.1", http.StatusMisdirectedRequest)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, r, problem{http.StatusMethodNotAllowed, "wrong-method", "the dashboard is read only: want GET"})
		return
	}
	h.mux.ServeHTTP(w, r)
}

// guard sets what holds for every answer.
func guard(header http.Header) {
	header.Set("Content-Security-Policy", strings.Join([]string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
	}, "; "))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// isLoopback reports whether a Host header names this machine itself. A name that
// somebody else may point anywhere does not.
func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	address, err := netip.ParseAddr(name)
	return err == nil && address.IsLoopback() || strings.EqualFold(name, "localhost")
}
