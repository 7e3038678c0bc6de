package registrytest

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// tokens are the bearer tokens that were given out, with their scopes.
type tokens struct {
	mu     sync.Mutex
	scopes map[string][]string
}

func newTokens() *tokens { return &tokens{scopes: map[string][]string{}} }

func (t *tokens) issue(scopes []string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	token := "token-" + rand.Text()
	t.scopes[token] = scopes
	return token
}

func (t *tokens) allows(token, repository, action string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	scopes, ok := t.scopes[token]
	if !ok {
		return false
	}
	if repository == "" { // a ping: any token will do
		return true
	}
	for _, scope := range scopes {
		rest, ok := strings.CutPrefix(scope, "repository:"+repository+":")
		if ok && slices.Contains(strings.Split(rest, ","), action) {
			return true
		}
	}
	return false
}

// ExpireTokens makes every token that was given out worthless.
func (r *Registry) ExpireTokens() {
	r.tokens.mu.Lock()
	defer r.tokens.mu.Unlock()
	clear(r.tokens.scopes)
}

func actionOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		return "pull"
	case http.MethodDelete:
		return "delete"
	default:
		return "push"
	}
}

// authorized reports whether the request may pass.
func (r *Registry) authorized(q *http.Request, target target) bool {
	switch r.options.Auth.Scheme {
	case Basic:
		user, password, ok := q.BasicAuth()
		return ok && user == r.options.Auth.Username && password == r.options.Auth.Password
	case Token:
		token, ok := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
		return ok && r.tokens.allows(token, target.repository, actionOf(q.Method))
	default:
		return true
	}
}

// challenge answers 401 with the required authentication.
func (r *Registry) challenge(w http.ResponseWriter, q *http.Request, target target) {
	header := `Basic realm="registrytest"`
	if r.options.Auth.Scheme == Token {
		header = fmt.Sprintf(`Bearer realm=%q,service=%q`, r.realm(q), r.service(q))
		if target.repository != "" {
			actions := actionOf(q.Method)
			if actions == "push" {
				actions = "pull,push"
			}
			header += fmt.Sprintf(`,scope="repository:%s:%s"`, target.repository, actions)
		}
	}
	w.Header().Set("Www-Authenticate", header)
	writeError(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
}

func (r *Registry) realm(q *http.Request) string {
	if r.options.Auth.Realm != "" {
		return r.options.Auth.Realm
	}
	scheme := "http"
	if q.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + q.Host + "/token"
}

func (r *Registry) service(q *http.Request) string {
	if r.options.Auth.Service != "" {
		return r.options.Auth.Service
	}
	return q.Host
}

// serveToken issues tokens: GET with Basic or without credentials, POST as OAuth2 does.
func (r *Registry) serveToken(w http.ResponseWriter, q *http.Request, entry *Request) {
	scopes, known, ok := r.tokenRequest(w, q, entry)
	if !ok {
		writeError(w, http.StatusUnauthorized, "UNAUTHORIZED", "wrong credential")
		return
	}
	if !known {
		scopes = onlyPull(scopes)
		if !r.options.Auth.AnonymousPull {
			scopes = nil
		}
	}
	token := r.tokens.issue(scopes)
	writeJSON(w, http.StatusOK, map[string]any{"token": token, "access_token": token, "expires_in": 300})
}

// tokenRequest reads the requested scopes, and whether the client is authenticated; ok is
// false for a wrong credential.
func (r *Registry) tokenRequest(w http.ResponseWriter, q *http.Request, entry *Request) (scopes []string, known, ok bool) {
	auth := r.options.Auth
	if q.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxForm))
		if err != nil {
			return nil, false, false
		}
		r.log.keepBody(entry, body)
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, false, false
		}
		scopes = splitScopes(form["scope"])
		if form.Get("grant_type") == "refresh_token" {
			ok = auth.IdentityToken != "" && form.Get("refresh_token") == auth.IdentityToken
			return scopes, ok, ok
		}
		ok = auth.Username != "" && form.Get("username") == auth.Username && form.Get("password") == auth.Password
		return scopes, ok, ok
	}
	scopes = splitScopes(q.URL.Query()["scope"])
	user, password, given := q.BasicAuth()
	if !given {
		return scopes, false, true
	}
	ok = auth.Username != "" && user == auth.Username && password == auth.Password
	return scopes, ok, ok
}

func splitScopes(values []string) []string {
	var scopes []string
	for _, value := range values {
		scopes = append(scopes, strings.Fields(value)...)
	}
	return scopes
}

// onlyPull narrows scopes to the rights of an anonymous client.
func onlyPull(scopes []string) []string {
	var narrowed []string
	for _, scope := range scopes {
		i := strings.LastIndexByte(scope, ':')
		if i > 0 && slices.Contains(strings.Split(scope[i+1:], ","), "pull") {
			narrowed = append(narrowed, scope[:i]+":pull")
		}
	}
	return narrowed
}
