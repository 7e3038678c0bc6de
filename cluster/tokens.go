package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/cluster/typed"
	"github.com/quaymaster/quaymaster/policy"
)

const (
	// DefaultTokenTTL is the cache lifetime of an authenticated token. A revoked token stays
	// valid for that time.
	DefaultTokenTTL = 10 * time.Second
	// maxTokenTTL is the maximum TTL.
	maxTokenTTL = 5 * time.Minute
	// maxTokens bounds the cache of tokens, in bytes, groups included.
	maxTokens = 1 << 20
	// maxToken bounds a token, in bytes; those of service accounts have about 1,200.
	maxToken = 8 << 10
	// tokenQPS and tokenBurst bound the reviews, which unauthenticated clients can cause: they
	// share the client's limit with lookups that admission waits for. Tokens that were
	// authenticated within metAge have a separate limit: a node uses the same token for an hour.
	tokenQPS   = 10
	tokenBurst = 40
	metAge     = time.Hour
	// maxMet bounds the tokens with the separate limit.
	maxMet = 8192
)

// TokenOptions are the dependencies of Tokens.
type TokenOptions struct {
	// Client is required. Its user must be allowed to create
	// tokenreviews.authentication.k8s.io.
	Client typed.Interface
	// Audiences are the accepted audiences of a token; none means the API server's own. With a
	// separate audience, a client does not reveal a token that the API server would accept.
	Audiences []string
	// TTL is the cache lifetime of an authenticated token; 0 means 10 s, and more than 5 min is
	// an error.
	TTL time.Duration
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Tokens authenticates tokens by TokenReviews (authentication.k8s.io/v1). It stores hashes of
// tokens, never tokens. It is safe for concurrent use. Create one with NewTokens.
type Tokens struct {
	client    typed.Interface
	audiences []string
	ttl       time.Duration
	memory    *cache.Cache[tokenKey, policy.User]
	flight    *cache.Flight[tokenKey, policy.User]
	met       *cache.Cache[tokenKey, struct{}]
	limit     flowcontrol.RateLimiter
	metLimit  flowcontrol.RateLimiter
}

type tokenKey [sha256.Size]byte

// NewTokens creates Tokens, and returns an error for invalid options.
func NewTokens(o TokenOptions) (*Tokens, error) {
	if o.Client == nil || o.TTL < 0 || o.TTL > maxTokenTTL || slices.Contains(o.Audiences, "") {
		return nil, fmt.Errorf("tokens: Client is required, no audience may be empty, and the TTL must not be below 0 or above %s", maxTokenTTL)
	}
	if o.TTL == 0 {
		o.TTL = DefaultTokenTTL
	}
	memory, err := cache.New(cache.Options[tokenKey, policy.User]{
		MaxCost: maxTokens, MaxTTL: o.TTL, Now: o.Now,
		Cost: func(_ tokenKey, u policy.User) int {
			cost := sha256.Size + len(u.Name) + len(u.UID) + len(u.Extra) + absentCost
			for _, group := range u.Groups {
				cost += len(group)
			}
			return cost
		},
	})
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	met, err := cache.New(cache.Options[tokenKey, struct{}]{MaxCost: maxMet, MaxTTL: metAge, Now: o.Now})
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	flight, err := cache.NewFlight[tokenKey, policy.User](lookupTimeout)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	return &Tokens{
		client: o.Client, audiences: slices.Clone(o.Audiences), ttl: o.TTL, memory: memory, flight: flight, met: met,
		limit: flowcontrol.NewTokenBucketRateLimiter(tokenQPS, tokenBurst), metLimit: flowcontrol.NewTokenBucketRateLimiter(tokenQPS, tokenBurst),
	}, nil
}

// Close stops the goroutines that evict expired entries.
func (t *Tokens) Close() {
	t.memory.Close()
	t.met.Close()
}

// Authenticate returns the user of a token, which must not be modified, and a user without a name
// for an invalid token. An error is ErrForbidden if the gateway may not create reviews, else
// ErrUnavailable, by errors.Is.
func (t *Tokens) Authenticate(ctx context.Context, token string) (policy.User, error) {
	if token == "" || len(token) > maxToken {
		return policy.User{}, nil
	}
	key := tokenKey(sha256.Sum256([]byte(token)))
	if known, ok := t.memory.Get(key); ok {
		return known, nil
	}
	found, err := t.flight.Do(ctx, key, func(ctx context.Context) (policy.User, error) {
		found, err := t.review(ctx, key, token)
		switch {
		case err == nil && found.Name != "":
			t.memory.Put(key, found, t.ttl)
			t.met.Put(key, struct{}{}, metAge)
		case err == nil:
			t.met.Delete(key)
		}
		return found, err
	})
	if err != nil && !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrUnavailable) { // the caller left, or the request panicked
		err = cannotReview(err)
	}
	return found, err
}

// review sends a review to the API server. The response's status.error for an unknown token may
// contain parts of the token, so it is neither returned nor logged.
func (t *Tokens) review(ctx context.Context, key tokenKey, token string) (policy.User, error) {
	limit := t.limit
	if _, isMet := t.met.Get(key); isMet {
		limit = t.metLimit
	}
	if !limit.TryAccept() {
		return policy.User{}, cannotReview(errors.New("too many tokens at once"))
	}
	review := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token, Audiences: t.audiences}}
	review, err := t.client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return policy.User{}, cannotReview(err)
	}
	status := &review.Status
	switch {
	case !status.Authenticated, status.User.Username == "":
		return policy.User{}, nil
	case len(t.audiences) > 0 && !slices.ContainsFunc(status.Audiences, t.isOurs):
		// An API server with an authenticator without support for audiences returns none.
		return policy.User{}, nil
	}
	user := policy.User{Name: status.User.Username, UID: status.User.UID, Groups: status.User.Groups}
	if len(status.User.Extra) > 0 {
		user.Extra, err = json.Marshal(status.User.Extra)
		if err != nil {
			return policy.User{}, cannotReview(err)
		}
	}
	return user, nil
}

// cannotReview returns the error of a failed review.
func cannotReview(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("review a token: grant the gateway's service account create on tokenreviews.authentication.k8s.io: %w: %w", ErrForbidden, err)
	}
	return fmt.Errorf("review a token: %w: %w", ErrUnavailable, err)
}

func (t *Tokens) isOurs(audience string) bool { return slices.Contains(t.audiences, audience) }
