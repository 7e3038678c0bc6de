package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// dashboardRights are the documented permissions of the gateway, and a reader.
const dashboardRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: dashboard-gateway}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:auth-delegator}
subjects: [{kind: ServiceAccount, name: quaymaster, namespace: quaymaster}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: dashboard-reader}
rules:
  - {nonResourceURLs: [/quaymaster/dashboard], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: dashboard-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: dashboard-reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: dashboard}]
`

// shown has the fields of the dashboard's list of images that tests read.
type shown struct {
	Reason string `json:"reason"`
	About  struct {
		Replica string `json:"replica"`
		Alone   string `json:"alone"`
	} `json:"about"`
	Items []struct {
		Reference string `json:"reference"`
	} `json:"items"`
}

func (s shown) has(name string) bool {
	for _, item := range s.Items {
		if strings.Contains(item.Reference, name) {
			return true
		}
	}
	return false
}

// looks asks the dashboard of a replica for its images; without a token where it is empty.
func looks(ctx context.Context, g *gateway.Gateway, token string) (status int, said shown, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.Configuration.Dashboard.Address+"/api/v1/images", http.NoBody)
	if err != nil {
		return 0, said, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, said, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, said, errors.Join(err, json.Unmarshal(text, &said))
}

// TestDashboard: of two replicas, the follower shows the results of the leader's scan to
// users with the permission, and its own when the leader is dead.
func TestDashboard(t *testing.T) {
	s := unguarded(t, "dashboard")
	s.rights(t)
	bare := s.env.Unsigned("shop/scanned", "1.0")
	_, err := s.create(t, pod("old", bare.Name)) // before there is a gateway
	must(t, err)
	replicas := s.replicas(t, 2, func(c *gateway.Configuration) {
		c.Dashboard.Address, err = process.FreeAddress(t.Context())
		must(t, err)
		c.Dashboard.TokenReview = true
		c.Scan.Interval = "1h"
	})
	leader, other := replicas[0], replicas[1]
	eventually(t, func(context.Context) error {
		if leads(other) == nil {
			leader, other = other, leader
		}
		return leads(leader)
	})
	s.gateway = leader
	s.enforce(t, env.Policy{Name: "dashboard", Namespaces: []string{"dashboard"}})
	token := func(name string, audiences ...string) string {
		made, err := s.plane.Token(t.Context(), s.namespace, name, audiences...)
		must(t, err)
		return made
	}
	reader := token("reader", audience)
	var led string
	eventually(t, func(ctx context.Context) error {
		status, said, err := looks(ctx, leader, reader)
		led = said.About.Replica
		if err != nil || status != http.StatusOK || !said.has("shop/scanned") {
			return fmt.Errorf("the leader: %d %+v: %w", status, said, errors.Join(err, errNotYet))
		}
		return nil
	})

	t.Run("the other replica shows the leader's words", func(t *testing.T) {
		eventually(t, func(ctx context.Context) error {
			status, said, err := looks(ctx, other, reader)
			if err != nil || status != http.StatusOK || said.About.Replica != led || said.About.Alone != "" || !said.has("shop/scanned") {
				return fmt.Errorf("%d %+v: %w", status, said, errors.Join(err, errNotYet))
			}
			return nil
		})
	})
	t.Run("each checks the permission", func(t *testing.T) {
		mayRead(t, replicas, reader, token)
	})
	t.Run("it shows its own results when the leader is dead, with a note, until it leads", func(t *testing.T) {
		leader.Kill()
		outlives(t, other, reader, led)
	})
	for _, g := range replicas {
		if strings.Contains(g.Log(), reader) {
			t.Error("the log holds a token")
		}
	}
}

// mayRead asks each replica by tokens of all kinds.
func mayRead(t *testing.T, replicas []*gateway.Gateway, reader string, token func(name string, audiences ...string) string) {
	t.Helper()
	for _, row := range []struct {
		reason, token, says string
		status              int
	}{
		{"a reader", reader, "", 200},
		{"an account without the permission", token("stranger", audience), "forbidden", 403},
		{"no token", "", "unauthenticated", 401},
		{"garbage", "garbage", "unauthenticated", 401},
		{"a token for another audience", token("reader", "elsewhere"), "unauthenticated", 401},
		{"a token for the API server", token("reader"), "unauthenticated", 401},
	} {
		for _, g := range replicas {
			status, said, err := looks(t.Context(), g, row.token)
			if err != nil || status != row.status || said.Reason != row.says || row.status != 200 && len(said.Items) > 0 {
				t.Errorf("%s: %d %+v, %v; want %d %s", row.reason, status, said, err, row.status, row.says)
			}
		}
	}
}

// outlives calls a replica just after its leader was killed.
func outlives(t *testing.T, other *gateway.Gateway, reader, led string) {
	t.Helper()
	status, said, err := looks(t.Context(), other, reader)
	if err != nil || status != http.StatusOK || said.About.Replica == led || !strings.Contains(said.About.Alone, led+", does not answer") || said.has("shop/scanned") {
		t.Errorf("%d %+v, %v: want its own words, and why", status, said, err)
	}
	eventually(t, func(ctx context.Context) error {
		status, said, err := looks(ctx, other, reader)
		if err != nil || status != http.StatusOK || said.About.Replica == led || said.About.Alone != "" {
			return fmt.Errorf("%d %+v: %w", status, said, errors.Join(err, errNotYet))
		}
		return nil
	})
}

// rights makes the accounts, and grants their permissions and the gateway's until the test
// ends.
func (s *scene) rights(t *testing.T) {
	t.Helper()
	s.account(t, "reader")
	s.account(t, "stranger")
	must(t, s.plane.ApplyYAML(t.Context(), dashboardRights))
	t.Cleanup(func() {
		ctx, rbac := context.WithoutCancel(t.Context()), s.client.RbacV1()
		must(t, rbac.ClusterRoles().Delete(ctx, "dashboard-reader", meta.DeleteOptions{}))
		for _, name := range []string{"dashboard-gateway", "dashboard-reader"} {
			must(t, rbac.ClusterRoleBindings().Delete(ctx, name, meta.DeleteOptions{}))
		}
	})
}
