package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/cluster/typed"
	"github.com/quaymaster/quaymaster/policy"
)

const (
	// DefaultAccessTTL is the lifetime of a cached response, positive or negative. A revoked
	// permission stays valid for that time.
	DefaultAccessTTL = 10 * time.Second
	// maxAccesses bounds the cached responses.
	maxAccesses = 4096
)

// AccessOptions are the dependencies of an Access.
type AccessOptions struct {
	// Client is required. Its user must be allowed to create
	// subjectaccessreviews.authorization.k8s.io.
	Client typed.Interface
	// Path is the path that users must be allowed to get: a non-resource path, as in
	// nonResourceURLs of ClusterRoles; required.
	Path string
	// TTL is the lifetime of a cached response; 0 means 10 s, and more than 5 min is an error.
	TTL time.Duration
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Access authorizes reads of a path by SubjectAccessReviews (authorization.k8s.io/v1). It is safe
// for concurrent use. Create one with NewAccess.
type Access struct {
	client typed.Interface
	path   string
	ttl    time.Duration
	memory *cache.Cache[tokenKey, bool]
	flight *cache.Flight[tokenKey, bool]
	limit  flowcontrol.RateLimiter
}

// NewAccess creates an Access, and returns an error for invalid options.
func NewAccess(o AccessOptions) (*Access, error) {
	if o.Client == nil || !strings.HasPrefix(o.Path, "/") || o.TTL < 0 || o.TTL > maxTokenTTL {
		return nil, fmt.Errorf("access: Client and a Path are required, and the TTL must not be below 0 or above %s", maxTokenTTL)
	}
	if o.TTL == 0 {
		o.TTL = DefaultAccessTTL
	}
	memory, err := cache.New(cache.Options[tokenKey, bool]{
		MaxCost: maxAccesses, MaxTTL: o.TTL, Now: o.Now, Cost: func(tokenKey, bool) int { return 1 },
	})
	if err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	flight, err := cache.NewFlight[tokenKey, bool](lookupTimeout)
	if err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	return &Access{
		client: o.Client, path: o.Path, ttl: o.TTL, memory: memory, flight: flight,
		limit: flowcontrol.NewTokenBucketRateLimiter(tokenQPS, tokenBurst),
	}, nil
}

// Close stops the goroutine that evicts expired entries.
func (a *Access) Close() { a.memory.Close() }

// MayRead reports whether a user may get the path. The review includes all attributes of the
// user, since a token may be restricted by its extra fields. An error is ErrForbidden if the
// gateway may not create reviews, else ErrUnavailable, by errors.Is.
func (a *Access) MayRead(ctx context.Context, user policy.User) (bool, error) {
	if user.Name == "" {
		return false, nil
	}
	// The lengths make the encoding unambiguous.
	text := fmt.Sprintf("%d:%s%d:%s%d:%s", len(user.Name), user.Name, len(user.UID), user.UID, len(user.Extra), user.Extra)
	for _, group := range slices.Sorted(slices.Values(user.Groups)) {
		text += fmt.Sprintf("%d:%s", len(group), group)
	}
	key := tokenKey(sha256.Sum256([]byte(text)))
	if may, ok := a.memory.Get(key); ok {
		return may, nil
	}
	may, err := a.flight.Do(ctx, key, func(ctx context.Context) (bool, error) {
		may, err := a.review(ctx, user)
		if err == nil {
			a.memory.Put(key, may, a.ttl)
		}
		return may, err
	})
	if err != nil && !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrUnavailable) { // the caller left, or the request panicked
		err = cannotAuthorize(err)
	}
	return may, err
}

// review sends a review to the API server. A review with an evaluation error that allows nothing
// is a denial, as in the API server itself.
func (a *Access) review(ctx context.Context, user policy.User) (bool, error) {
	if !a.limit.TryAccept() {
		return false, cannotAuthorize(errors.New("too many users at once"))
	}
	review := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
		User: user.Name, UID: user.UID, Groups: user.Groups, NonResourceAttributes: &authorization.NonResourceAttributes{Path: a.path, Verb: "get"},
	}}
	if len(user.Extra) > 0 {
		if err := json.Unmarshal(user.Extra, &review.Spec.Extra); err != nil {
			return false, cannotAuthorize(err)
		}
	}
	review, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, cannotAuthorize(err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// cannotAuthorize returns the error of a failed review.
func cannotAuthorize(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("review access: grant the gateway's service account create on subjectaccessreviews.authorization.k8s.io: %w: %w", ErrForbidden, err)
	}
	return fmt.Errorf("review access: %w: %w", ErrUnavailable, err)
}
