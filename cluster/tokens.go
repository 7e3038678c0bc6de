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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/policy"
)

const (
	// DefaultTokenTTL is how long a token that is known stays so. A token that is
	// taken back lives on for that long.
	DefaultTokenTTL = 10 * time.Second
	// maxTokenTTL is the longest time that may be set.
	maxTokenTTL = 5 * time.Minute
	// maxTokens bounds what is remembered of tokens, in bytes, groups included.
	maxTokens = 1 << 20
	// maxToken bounds a token, in bytes; those of service accounts have about 1,200.
	maxToken = 8 << 10
	// tokenQPS and tokenBurst bound the reviews, which strangers can cause: they
	// share the client's own limit with look-ups that admission waits for. Those of
	// tokens that were met in the last metAge, which no stranger has, are bounded by
	// themselves: a node asks with the same token for an hour.
	tokenQPS   = 10
	tokenBurst = 40
	metAge     = time.Hour
	// maxMet bounds the tokens that are known to have been met.
	maxMet = 8192
)

// TokenOptions are what Tokens need.
type TokenOptions struct {
	// Client is required. Its user must be allowed to create
	// tokenreviews.authentication.k8s.io.
	Client kubernetes.Interface
	// Audiences are what a token must be made for, one of them; none means the API
	// server's own. With one of the gateway's own, who sends his token here hands
	// over nothing that the API server would take.
	Audiences []string
	// TTL is how long a token that is known stays so; 0 means 10 s, and more than
	// 5 min is refused.
	TTL time.Duration
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Tokens knows whose token it is, by TokenReviews (authentication.k8s.io/v1). It
// keeps hashes of tokens, never tokens. It is safe for concurrent use. Make one
// with NewTokens.
type Tokens struct {
	client    kubernetes.Interface
	audiences []string
	ttl       time.Duration
	memory    *cache.Cache[tokenKey, policy.User]
	flight    *cache.Flight[tokenKey, policy.User]
	met       *cache.Cache[tokenKey, struct{}]
	limit     flowcontrol.RateLimiter
	metLimit  flowcontrol.RateLimiter
}

type tokenKey [sha256.Size]byte

// NewTokens makes Tokens; it refuses options that mean nothing.
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

// Close stops the goroutines that clear away what has ended.
func (t *Tokens) Close() {
	t.memory.Close()
	t.met.Close()
}

// Authenticate returns the user that a token belongs to, whom nobody may change, and
// one without a name if nobody is known by it. An error is ErrForbidden if the gateway
// may not ask, else ErrUnavailable, by errors.Is.
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
	if err != nil && !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrUnavailable) { // the caller left, or the work broke
		err = cannotReview(err)
	}
	return found, err
}

// review asks the API server. What it says in status.error about a token that it
// does not know may hold parts of the token, and goes nowhere.
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
		// An API server whose authenticator knows no audiences says nothing of them.
		return policy.User{}, nil
	}
	user := policy.User{Name: status.User.Username, UID: status.User.UID, Groups: status.User.Groups}
	if len(status.User.Extra) > 0 {
		if user.Extra, err = json.Marshal(status.User.Extra); err != nil {
			return policy.User{}, cannotReview(err)
		}
	}
	return user, nil
}

// cannotReview says why nobody knows whose token it is.
func cannotReview(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("review a token: grant the gateway's service account create on tokenreviews.authentication.k8s.io: %w: %w", ErrForbidden, err)
	}
	return fmt.Errorf("review a token: %w: %w", ErrUnavailable, err)
}

func (t *Tokens) isOurs(audience string) bool { return slices.Contains(t.audiences, audience) }
