package registry

import (
	"context"
	"errors"
	"strings"
	"sync"

	"oras.land/oras-go/v2/registry/remote/auth"
)

// errNotRemembered is what auth.Cache says for "ask".
var errNotRemembered = errors.New("not remembered")

// tokens remembers how a host wants to be asked, and the tokens that were
// given out, each for its repository and scope: credentials may differ by
// repository. It is bounded where oras-go's own cache grows for ever.
type tokens struct {
	schemes *memory[auth.Scheme]
	values  *memory[string]

	mu      sync.Mutex
	flights map[string]*flight
}

// flight is one token that is being fetched.
type flight struct {
	done  chan struct{}
	token string
	err   error
}

func newTokens() *tokens {
	return &tokens{
		schemes: newMemory[auth.Scheme](maxSchemes, tokenAge),
		values:  newMemory[string](maxTokens, tokenAge),
		flights: map[string]*flight{},
	}
}

// forRepository is the auth.Cache of requests to one repository.
func (t *tokens) forRepository(path string) auth.Cache {
	return repositoryTokens{tokens: t, path: path}
}

type repositoryTokens struct {
	*tokens
	path string
}

func (r repositoryTokens) key(registry string, scheme auth.Scheme, key string) string {
	return strings.Join([]string{registry, r.path, scheme.String(), key}, "\n")
}

// GetScheme implements auth.Cache.
func (r repositoryTokens) GetScheme(_ context.Context, registry string) (auth.Scheme, error) {
	if scheme, ok := r.schemes.get(registry); ok {
		return scheme, nil
	}
	return auth.SchemeUnknown, errNotRemembered
}

// GetToken implements auth.Cache.
func (r repositoryTokens) GetToken(_ context.Context, registry string, scheme auth.Scheme, key string) (string, error) {
	if token, ok := r.values.get(r.key(registry, scheme, key)); ok {
		return token, nil
	}
	return "", errNotRemembered
}

// Set implements auth.Cache. Requests that want the same token wait for one
// fetch; when that one's caller goes away, the next one fetches.
func (r repositoryTokens) Set(ctx context.Context, registry string, scheme auth.Scheme, key string,
	fetch func(context.Context) (string, error)) (string, error) {
	name := r.key(registry, scheme, key)
	for {
		current, mine := r.board(name)
		if mine {
			current.token, current.err = fetch(ctx)
			if current.err == nil {
				r.schemes.set(registry, scheme)
				r.values.set(name, current.token)
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

// board returns the flight of a token, and whether the caller is to fly it.
func (t *tokens) board(name string) (*flight, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if current, ok := t.flights[name]; ok {
		return current, false
	}
	current := &flight{done: make(chan struct{})}
	t.flights[name] = current
	return current, true
}

func (t *tokens) land(name string, current *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.flights, name)
	close(current.done)
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
