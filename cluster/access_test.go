package cluster_test

import (
	"errors"
	"slices"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/policy"
)

func TestAccess(t *testing.T) {
	const path = "/quaymaster/dashboard"
	resource := schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}
	for _, row := range []struct {
		reason  string
		user    string
		status  authorization.SubjectAccessReviewStatus
		err     error
		may     bool
		want    error
		reviews int // of two questions
	}{
		{"may", "reader", authorization.SubjectAccessReviewStatus{Allowed: true}, nil, true, nil, 1},
		{"may not", "reader", authorization.SubjectAccessReviewStatus{}, nil, false, nil, 1},
		{"allowed by one and denied by another", "reader", authorization.SubjectAccessReviewStatus{Allowed: true, Denied: true}, nil, false, nil, 1},
		{"nobody", "", authorization.SubjectAccessReviewStatus{Allowed: true}, nil, false, nil, 0},
		{"the gateway may not ask", "reader", authorization.SubjectAccessReviewStatus{}, apierrors.NewForbidden(resource, "", errors.New("no")), false, cluster.ErrForbidden, 2},
		{"the API server is down", "reader", authorization.SubjectAccessReviewStatus{}, errors.New("connection refused"), false, cluster.ErrUnavailable, 2},
	} {
		t.Run(row.reason, func(t *testing.T) {
			var asked []authorization.SubjectAccessReviewSpec
			client := fake.NewClientset()
			client.PrependReactor("create", "subjectaccessreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
				review, ok := action.(kubetesting.CreateAction).GetObject().(*authorization.SubjectAccessReview)
				if !ok {
					return true, nil, errors.New("not a SubjectAccessReview")
				}
				asked = append(asked, review.Spec)
				return true, &authorization.SubjectAccessReview{Status: row.status}, row.err
			})
			access, err := cluster.NewAccess(cluster.AccessOptions{Client: client, Path: path})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(access.Close)
			for range 2 {
				may, err := access.MayRead(t.Context(), policy.User{Name: row.user, Groups: []string{"b", "a"}})
				if may != row.may || !errors.Is(err, row.want) {
					t.Errorf("%t, %v, want %t, %v", may, err, row.may, row.want)
				}
			}
			if len(asked) != row.reviews {
				t.Fatalf("%d reviews, want %d", len(asked), row.reviews)
			}
			for _, spec := range asked {
				if spec.User != row.user || !slices.Equal(spec.Groups, []string{"b", "a"}) || spec.NonResourceAttributes.Path != path || spec.NonResourceAttributes.Verb != "get" || spec.ResourceAttributes != nil {
					t.Errorf("asked %+v", spec)
				}
			}
		})
	}
}

// TestATokenForLess: two tokens of one user may be for different things, and the API
// server alone knows what.
func TestATokenForLess(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "subjectaccessreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
		review, ok := action.(kubetesting.CreateAction).GetObject().(*authorization.SubjectAccessReview)
		if !ok {
			return true, nil, errors.New("not a SubjectAccessReview")
		}
		may := len(review.Spec.Extra["scopes"]) == 0 && review.Spec.UID != "8"
		return true, &authorization.SubjectAccessReview{Status: authorization.SubjectAccessReviewStatus{Allowed: may}}, nil
	})
	access, err := cluster.NewAccess(cluster.AccessOptions{Client: client, Path: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(access.Close)
	for range 2 { // the second time from memory
		for _, row := range []struct {
			reason string
			user   policy.User
			may    bool
			want   error
		}{
			{"for all", policy.User{Name: "dev", UID: "7"}, true, nil},
			{"for something", policy.User{Name: "dev", UID: "7", Extra: []byte(`{"scopes":["user:info"]}`)}, false, nil},
			{"another user with the same name", policy.User{Name: "dev", UID: "8"}, false, nil},
			{"the scopes cannot be parsed", policy.User{Name: "dev", UID: "7", Extra: []byte(`{`)}, false, cluster.ErrUnavailable},
		} {
			if may, err := access.MayRead(t.Context(), row.user); may != row.may || !errors.Is(err, row.want) {
				t.Errorf("%s: %t, %v", row.reason, may, err)
			}
		}
	}
}

func TestNewAccessRefuses(t *testing.T) {
	client := fake.NewClientset()
	for _, row := range []struct {
		reason  string
		options cluster.AccessOptions
	}{
		{"no client", cluster.AccessOptions{Path: "/x"}}, {"no path", cluster.AccessOptions{Client: client}},
		{"no whole path", cluster.AccessOptions{Client: client, Path: "x"}}, {"a negative age", cluster.AccessOptions{Client: client, Path: "/x", TTL: -1}},
	} {
		if _, err := cluster.NewAccess(row.options); err == nil {
			t.Errorf("%s: made all the same", row.reason)
		}
	}
}
