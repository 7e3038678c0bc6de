package cluster_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/policy"
)

// reviewer answers TokenReviews as an API server does, and counts them.
type reviewer struct {
	status map[string]authentication.TokenReviewStatus // by token
	err    error
	asked  []authentication.TokenReviewSpec
}

func (r *reviewer) client() *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
		review, ok := action.(kubetesting.CreateAction).GetObject().(*authentication.TokenReview)
		if !ok {
			return true, nil, errors.New("not a TokenReview")
		}
		r.asked = append(r.asked, review.Spec)
		if r.err != nil {
			return true, nil, r.err
		}
		return true, &authentication.TokenReview{Status: r.status[review.Spec.Token]}, nil
	})
	return client
}

func known(user string, groups, audiences []string) authentication.TokenReviewStatus {
	return authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{Username: user, Groups: groups}, Audiences: audiences}
}

func TestTokens(t *testing.T) {
	const ci = "system:serviceaccount:ci:builder"
	resource := schema.GroupResource{Group: "authentication.k8s.io", Resource: "tokenreviews"}
	for _, row := range []struct {
		reason    string
		token     string
		status    authentication.TokenReviewStatus
		err       error
		audiences []string
		user      string
		want      error
		reviews   int // of two questions
	}{
		{"known", "t", known(ci, []string{"builders"}, []string{"quaymaster"}), nil, []string{"quaymaster"}, ci, nil, 1},
		{"for one of two audiences", "t", known(ci, nil, []string{"b"}), nil, []string{"a", "b"}, ci, nil, 1},
		{"the API server's own audience", "t", known(ci, nil, nil), nil, nil, ci, nil, 1},
		{"for another audience", "t", known(ci, nil, []string{"other"}), nil, []string{"quaymaster"}, "", nil, 2},
		{"from an API server without audiences", "t", known(ci, nil, nil), nil, []string{"quaymaster"}, "", nil, 2},
		{"not known", "t", authentication.TokenReviewStatus{Error: "invalid bearer token"}, nil, nil, "", nil, 2},
		{"not known, with a name", "t", authentication.TokenReviewStatus{User: authentication.UserInfo{Username: ci}}, nil, nil, "", nil, 2},
		{"known without a name", "t", known("", nil, nil), nil, nil, "", nil, 2},
		{"the gateway may not ask", "t", authentication.TokenReviewStatus{}, apierrors.NewForbidden(resource, "", errors.New("no")), nil, "", cluster.ErrForbidden, 2},
		{"the API server is down", "t", authentication.TokenReviewStatus{}, errors.New("connection refused"), nil, "", cluster.ErrUnavailable, 2},
		{"no token", "", known(ci, nil, nil), nil, nil, "", nil, 0},
		{"an endless token", strings.Repeat("t", 9<<10), known(ci, nil, nil), nil, nil, "", nil, 0},
	} {
		t.Run(row.reason, func(t *testing.T) {
			r := &reviewer{status: map[string]authentication.TokenReviewStatus{row.token: row.status}, err: row.err}
			tokens, err := cluster.NewTokens(cluster.TokenOptions{Client: r.client(), Audiences: row.audiences})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(tokens.Close)
			for range 2 {
				user, err := tokens.Authenticate(t.Context(), row.token)
				if user.Name != row.user || !errors.Is(err, row.want) || (err != nil) != (row.want != nil) || user.Name != "" && !slices.Equal(user.Groups, row.status.User.Groups) {
					t.Errorf("%+v, %v", user, err)
				}
			}
			if len(r.asked) != row.reviews {
				t.Errorf("the API server was asked %d times, want %d", len(r.asked), row.reviews)
			}
			for _, spec := range r.asked {
				if spec.Token != row.token || !slices.Equal(spec.Audiences, row.audiences) {
					t.Errorf("asked %+v", spec)
				}
			}
		})
	}
}

// TestTokensKeepScopes: the API server's extra fields of a token are kept, because
// a token may have fewer rights than its user.
func TestTokensKeepScopes(t *testing.T) {
	status := known("dev", nil, nil)
	status.User.UID, status.User.Extra = "7", map[string]authentication.ExtraValue{"scopes.authorization.openshift.io": {"user:info"}, "a": {"b", "c"}}
	r := &reviewer{status: map[string]authentication.TokenReviewStatus{"t": status, "all": known("dev", nil, nil)}}
	tokens, err := cluster.NewTokens(cluster.TokenOptions{Client: r.client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tokens.Close)
	for token, want := range map[string]policy.User{
		"t": {Name: "dev", UID: "7", Extra: []byte(`{"a":["b","c"],"scopes.authorization.openshift.io":["user:info"]}`)}, "all": {Name: "dev"},
	} {
		for range 2 {
			if user, err := tokens.Authenticate(t.Context(), token); err != nil || !reflect.DeepEqual(user, want) {
				t.Errorf("%s: %+v, %v", token, user, err)
			}
		}
	}
}

func TestTokensAreForgotten(t *testing.T) {
	c := &clock{time.Now()}
	r := &reviewer{status: map[string]authentication.TokenReviewStatus{"t": known("ci", nil, nil)}}
	tokens, err := cluster.NewTokens(cluster.TokenOptions{Client: r.client(), Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tokens.Close)
	for _, row := range []struct {
		reason  string
		after   time.Duration
		reviews int
		user    string
	}{
		{"at first", 0, 1, "ci"},
		{"a moment later", 9 * time.Second, 1, "ci"},
		{"taken back meanwhile", time.Second, 2, ""},
	} {
		if row.user == "" {
			r.status = nil
		}
		c.now = c.now.Add(row.after)
		if user, err := tokens.Authenticate(t.Context(), "t"); user.Name != row.user || err != nil || len(r.asked) != row.reviews {
			t.Errorf("%s: %q, %v, asked %d times", row.reason, user.Name, err, len(r.asked))
		}
	}
}

// TestUnknownTokensAreBounded: unknown tokens cannot use up the limit of other lookups.
func TestUnknownTokensAreBounded(t *testing.T) {
	r := &reviewer{}
	tokens, err := cluster.NewTokens(cluster.TokenOptions{Client: r.client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tokens.Close)
	bounded := 0
	for i := range 1000 {
		_, err := tokens.Authenticate(t.Context(), fmt.Sprint("guess-", i))
		if errors.Is(err, cluster.ErrUnavailable) {
			bounded++
		} else if err != nil {
			t.Fatal(err)
		}
		if err != nil && strings.Contains(err.Error(), "guess-") {
			t.Fatalf("the error contains the token: %v", err)
		}
	}
	if len(r.asked) > 200 || bounded != 1000-len(r.asked) {
		t.Errorf("%d reviews, and %d could not be made", len(r.asked), bounded)
	}
}

// TestUnknownTokensBlockNoKnownToken: a token that was known a moment ago is reviewed again,
// despite any number of unknown tokens.
func TestUnknownTokensBlockNoKnownToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes in which a question more is free
		c := &clock{time.Now()}
		r := &reviewer{status: map[string]authentication.TokenReviewStatus{"node": known("node", nil, nil), "left": known("left", nil, nil), "new": known("new", nil, nil)}}
		tokens, err := cluster.NewTokens(cluster.TokenOptions{Client: r.client(), Now: c.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer tokens.Close()
		ask := func(token string) (string, error) {
			user, err := tokens.Authenticate(t.Context(), token)
			return user.Name, err
		}
		for _, token := range []string{"node", "left"} {
			if user, err := ask(token); user != token || err != nil {
				t.Fatalf("%s: %q, %v", token, user, err)
			}
		}
		c.now = c.now.Add(10 * time.Second)
		delete(r.status, "left")
		for i := range 1000 {
			_, _ = ask(fmt.Sprint("guess-", i))
		}
		for _, row := range []struct {
			reason, token, user string
			want                error
		}{
			{"was known a moment ago", "node", "node", nil},
			{"was known, and is not any more", "left", "", nil},
			{"is unknown by now", "left", "", cluster.ErrUnavailable},
			{"was never known", "new", "", cluster.ErrUnavailable},
		} {
			if user, err := ask(row.token); user != row.user || !errors.Is(err, row.want) || (err != nil) != (row.want != nil) {
				t.Errorf("%s: %q, %v", row.reason, user, err)
			}
		}
		c.now = c.now.Add(time.Hour)
		if _, err := ask("node"); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("met an hour ago: %v", err)
		}
	})
}

func TestNewTokensRefuses(t *testing.T) {
	client := fake.NewClientset()
	if tokens, err := cluster.NewTokens(cluster.TokenOptions{Client: client, TTL: time.Minute}); err != nil {
		t.Fatal(err)
	} else {
		tokens.Close()
	}
	for reason, o := range map[string]cluster.TokenOptions{
		"no client":         {},
		"an empty audience": {Client: client, Audiences: []string{""}},
		"a negative TTL":    {Client: client, TTL: -1},
		"an hour":           {Client: client, TTL: time.Hour},
	} {
		if _, err := cluster.NewTokens(o); err == nil {
			t.Errorf("%s: not refused", reason)
		}
	}
}
