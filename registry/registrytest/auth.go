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

func (t *tokens) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.scopes)
}

// ExpireTokens makes every token that was given out worthless.
func (r *Registry) ExpireTokens() {
	r.login.tokens.expire()
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

// login is the authentication of requests, and the token service.
type login struct {
	auth   Auth
	tokens *tokens
	log    *requestLog
}

// allows reports whether the request may pass.
func (l login) allows(q *http.Request, target target) bool {
	switch l.auth.Scheme {
	case Basic:
		user, password, ok := q.BasicAuth()
		return ok && user == l.auth.Username && password == l.auth.Password
	case Token:
		token, ok := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
		return ok && l.tokens.allows(token, target.repository, actionOf(q.Method))
	default:
		return true
	}
}

// challenge answers 401 with the required authentication.
func (l login) challenge(w http.ResponseWriter, q *http.Request, target target) {
	header := `Basic realm="registrytest"`
	if l.auth.Scheme == Token {
		header = fmt.Sprintf(`Bearer realm=%q,service=%q`, l.realm(q), l.service(q))
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

func (l login) realm(q *http.Request) string {
	if l.auth.Realm != "" {
		return l.auth.Realm
	}
	scheme := "http"
	if q.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + q.Host + "/token"
}

func (l login) service(q *http.Request) string {
	if l.auth.Service != "" {
		return l.auth.Service
	}
	return q.Host
}

// serveToken issues tokens: GET with Basic or without credentials, POST as OAuth2 does.
func (l login) serveToken(w http.ResponseWriter, q *http.Request, entry *Request) {
	scopes, known, ok := l.request(w, q, entry)
	if !ok {
		writeError(w, http.StatusUnauthorized, "UNAUTHORIZED", "wrong credential")
		return
	}
	if !known {
		scopes = onlyPull(scopes)
		if !l.auth.AnonymousPull {
			scopes = nil
		}
	}
	token := l.tokens.issue(scopes)
	writeJSON(w, http.StatusOK, map[string]any{"token": token, "access_token": token, "expires_in": 300})
}

// request reads the requested scopes, and whether the client is authenticated; ok is
// false for a wrong credential.
func (l login) request(w http.ResponseWriter, q *http.Request, entry *Request) (scopes []string, known, ok bool) {
	if q.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxForm))
		if err != nil {
			return nil, false, false
		}
		l.log.keepBody(entry, body)
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, false, false
		}
		scopes = splitScopes(form["scope"])
		if form.Get("grant_type") == "refresh_token" {
			ok = l.auth.IdentityToken != "" && form.Get("refresh_token") == l.auth.IdentityToken
			return scopes, ok, ok
		}
		ok = l.auth.Username != "" && form.Get("username") == l.auth.Username && form.Get("password") == l.auth.Password
		return scopes, ok, ok
	}
	scopes = splitScopes(q.URL.Query()["scope"])
	user, password, given := q.BasicAuth()
	if !given {
		return scopes, false, true
	}
	ok = l.auth.Username != "" && user == l.auth.Username && password == l.auth.Password
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
