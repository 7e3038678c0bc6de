// Package login caches authentication schemes and tokens of registries.
//
// It is the cache of oras-go's auth client: bounded, by repository and scope, and with one
// fetch for concurrent requests of the same token.
package login

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/quaymaster/quaymaster/registry/internal/memory"
)

// The cache's bounds. Tokens live for minutes; a token of an hour is not worth keeping for
// so long, and the token of a removed credential is evicted with it.
const (
	maxTokens  = 4096
	maxSchemes = 1024
	tokenAge   = 10 * time.Minute
)

// errNotRemembered is auth.Cache's result for a miss.
var errNotRemembered = errors.New("not remembered")

// Tokens caches the authentication scheme of a host, and its tokens, each for its
// repository and scope: credentials may differ by repository. It is bounded, unlike
// oras-go's own cache.
type Tokens struct {
	schemes *memory.Map[auth.Scheme]
	values  *memory.Map[string]

	mu      sync.Mutex
	flights map[string]*flight
}

// flight is one token that is being fetched.
type flight struct {
	done  chan struct{}
	token string
	err   error
}

// NewTokens returns an empty cache.
func NewTokens() *Tokens {
	return &Tokens{
		schemes: memory.New[auth.Scheme](maxSchemes, tokenAge),
		values:  memory.New[string](maxTokens, tokenAge),
		flights: map[string]*flight{},
	}
}

// ForRepository is the auth.Cache of one request to a repository.
func (t *Tokens) ForRepository(path string) auth.Cache {
	return &repositoryTokens{Tokens: t, path: path, tried: map[string]string{}}
}

type repositoryTokens struct {
	*Tokens
	path string

	mu    sync.Mutex
	tried map[string]string // results of GetToken, which were refused if Set follows
}

func (r *repositoryTokens) key(registry string, scheme auth.Scheme, key string) string {
	return strings.Join([]string{registry, r.path, scheme.String(), key}, "\n")
}

// GetScheme implements auth.Cache.
func (r *repositoryTokens) GetScheme(_ context.Context, registry string) (auth.Scheme, error) {
	if scheme, ok := r.schemes.Get(registry); ok {
		return scheme, nil
	}
	return auth.SchemeUnknown, errNotRemembered
}

// GetToken implements auth.Cache.
func (r *repositoryTokens) GetToken(_ context.Context, registry string, scheme auth.Scheme, key string) (string, error) {
	name := r.key(registry, scheme, key)
	if token, ok := r.values.Get(name); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tried[name] = token
		return token, nil
	}
	return "", errNotRemembered
}

// Set implements auth.Cache. Concurrent requests for the same token share one fetch; when
// its caller is cancelled, the next one fetches. A request with a late challenge uses the
// fetched token.
func (r *repositoryTokens) Set(ctx context.Context, registry string, scheme auth.Scheme, key string,
	fetch func(context.Context) (string, error)) (string, error) {
	name := r.key(registry, scheme, key)
	for {
		current, mine := r.board(name)
		if mine {
			if token, ok := r.untried(name); ok {
				current.token = token
				r.land(name, current)
				return token, nil
			}
			current.token, current.err = fetch(ctx)
			if current.err == nil {
				r.schemes.Set(registry, scheme)
				r.values.Set(name, current.token)
			}
			r.land(name, current)
			return current.token, current.err
		}
		select {
		case <-current.done:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if !isContextError(current.err) {
			return current.token, current.err
		}
	}
}

// untried returns a token that was cached after this request was sent.
func (r *repositoryTokens) untried(name string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	token, ok := r.values.Get(name)
	return token, ok && token != r.tried[name]
}

// board returns the flight of a token, and whether the caller is to fly it.
func (t *Tokens) board(name string) (*flight, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if current, ok := t.flights[name]; ok {
		return current, false
	}
	current := &flight{done: make(chan struct{})}
	t.flights[name] = current
	return current, true
}

func (t *Tokens) land(name string, current *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.flights, name)
	close(current.done)
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
