package cleanup

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/authorization/v1"

	core "github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/lifetime"
)

const (
	// reviewTimeout bounds one review. The webhook for labels has 5 s as a whole.
	reviewTimeout = 3 * time.Second
	// accessAge is the lifetime of an answer about the own permissions: one request for each verb, kind
	// and namespace. A missing permission may be granted at any time, and is asked for in each pass.
	accessAge  = 5 * time.Minute
	missingAge = 30 * time.Second
	// maxAccess bounds the answers that are kept.
	maxAccess = 10_000
)

// ownAccess implements cleanup.Access by SelfSubjectAccessReviews.
type ownAccess struct {
	client typed.SelfSubjectAccessReviewsGetter
	now    func() time.Time

	mu    sync.Mutex
	known map[question]permission
}

type question struct {
	verb, group, resource, namespace string
}

type permission struct {
	is    bool
	until time.Time
}

// May reports whether this process may make a request.
func (a *ownAccess) May(ctx context.Context, verb string, kind core.Kind, namespace string) (bool, error) {
	at := question{verb, kind.Group, kind.Resource, namespace}
	a.mu.Lock()
	known, is := a.known[at]
	a.mu.Unlock()
	if is && a.now().Before(known.until) {
		return known.is, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review, err := a.client.SelfSubjectAccessReviews().Create(ctx, &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorization.ResourceAttributes{Verb: verb, Group: kind.Group, Version: kind.Version, Resource: kind.Resource, Namespace: namespace},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review the permission to %s %s: %w", verb, kind.Resource, err)
	}
	may := review.Status.Allowed && !review.Status.Denied
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxAccess {
		a.known = nil
	}
	if a.known == nil {
		a.known = map[question]permission{}
	}
	lasts := accessAge
	if !may {
		lasts = missingAge
	}
	a.known[at] = permission{may, a.now().Add(lasts)}
	return may, nil
}

// UserAccess implements lifetime.Authorizer by SubjectAccessReviews, without a cache: a label has
// one review, and a permission that was withdrawn counts at once.
type UserAccess struct {
	Client typed.SubjectAccessReviewsGetter
}

// MayDelete reports whether a user may delete an object.
func (a UserAccess) MayDelete(ctx context.Context, user policy.User, what lifetime.Deletion) (bool, error) {
	if user.Name == "" {
		return false, nil
	}
	review := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
		User: user.Name, UID: user.UID, Groups: user.Groups,
		ResourceAttributes: &authorization.ResourceAttributes{
			Verb: "delete", Group: what.Group, Version: what.Version, Resource: what.Resource, Namespace: what.Namespace, Name: what.Name,
		},
	}}
	if len(user.Extra) > 0 {
		if err := json.Unmarshal(user.Extra, &review.Spec.Extra); err != nil {
			return false, fmt.Errorf("review the permission of a user: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	answer, err := a.Client.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review the permission of a user (grant create on subjectaccessreviews.authorization.k8s.io): %w", err)
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}
