package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// apiPath is the endpoint for programs, and audience that of their tokens.
const apiPath, audience = "/api/v1/verify", "quaymaster"

// verdictList has the fields of the record that tests read.
type verdictList struct {
	Kind  string `json:"kind"`
	Items []struct {
		Result string `json:"result"`
		Images []struct {
			Pinned  string `json:"pinned"`
			Reasons []struct {
				Code string `json:"code"`
			} `json:"reasons"`
		} `json:"images"`
	} `json:"items"`
}

// verify asks by a token; empty is none.
func (c caller) verify(t *testing.T, token, contentType, body string) (status int, said verdictList, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+apiPath, bytes.NewReader([]byte(body)))
	must(t, err)
	request.Header.Set("Content-Type", contentType)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.client.Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	must(t, err, json.Unmarshal(answer, &said))
	return response.StatusCode, said, string(answer)
}

// account makes a service account.
func (s *scene) account(t *testing.T, name string) {
	t.Helper()
	_, err := s.client.CoreV1().ServiceAccounts(s.namespace).Create(t.Context(), &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{})
	must(t, err)
}

// TestAPI: a program that has a token of the cluster asks without a webhook.
func TestAPI(t *testing.T) {
	c := gateway.Configuration{}
	c.Endpoints.API = gateway.API{TokenReview: true, Users: []string{"system:serviceaccount:api:ci"}}
	s := guard(t, "api", c)
	s.enforce(t, env.Policy{Name: "api", Namespaces: []string{s.namespace}})
	s.account(t, "ci")
	s.account(t, "other")
	token := func(name string, audiences ...string) string {
		made, err := s.plane.Token(t.Context(), s.namespace, name, audiences...)
		must(t, err)
		return made
	}
	ci := token("ci", audience)
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	asking := func(image string) string { return fmt.Sprintf(`{"images":[%q],"namespace":%q}`, image, s.namespace) }
	endpoint := s.caller(t, s.gateway)

	t.Run("before it may review tokens", func(t *testing.T) {
		if status, _, text := endpoint.verify(t, ci, "application/json", asking(signed.Name)); status != http.StatusServiceUnavailable || !strings.Contains(text, "indeterminate") {
			t.Errorf("got %d %s, want 503: the token could not be reviewed", status, text)
		}
	})
	must(t, s.plane.AllowTokenReview(t.Context()))
	t.Cleanup(func() { s.denyTokenReview(t) })
	eventually(t, func(context.Context) error { // the API server watches its roles
		if status, _, text := endpoint.verify(t, ci, "application/json", asking(signed.Name)); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, text)
		}
		return nil
	})

	for _, row := range []struct {
		reason, token, image string
		status               int
		answer, says         string
	}{
		{"a signed image", ci, signed.Name, 200, "allow", env.Pinned(signed)},
		{"an unsigned image", ci, bare.Name, 200, "deny", "unsigned"},
		{"garbage", "garbage", signed.Name, 401, "", "unauthenticated"},
		{"no token", "", signed.Name, 401, "", "unauthenticated"},
		{"a token with its end changed", ci[:len(ci)-8] + "AAAAAAAA", signed.Name, 401, "", "unauthenticated"},
		{"a token that is for the API server", token("ci"), signed.Name, 401, "", "unauthenticated"},
		{"a token for another audience", token("ci", "elsewhere"), signed.Name, 401, "", "unauthenticated"},
		{"another account", token("other", audience), signed.Name, 403, "", "forbidden"},
	} {
		status, said, text := endpoint.verify(t, row.token, "application/json", asking(row.image))
		answer := ""
		if len(said.Items) == 1 {
			answer = said.Items[0].Result
		}
		if status != row.status || answer != row.answer || !strings.Contains(text, row.says) {
			t.Errorf("%s: %d %s, want %d, %q, saying %q", row.reason, status, text, row.status, row.answer, row.says)
		}
	}
	t.Run("manifests", func(t *testing.T) {
		body := string(manifest(t, pod("web", signed.Name))) + "---\n" + string(manifest(t, pod("bare", bare.Name)))
		body = strings.ReplaceAll(body, "metadata:\n", "metadata:\n  namespace: "+s.namespace+"\n")
		status, said, text := endpoint.verify(t, ci, "application/yaml", body)
		if status != 200 || said.Kind != "VerdictList" || len(said.Items) != 2 || said.Items[0].Result != "allow" || said.Items[1].Result != "deny" {
			t.Errorf("got %d %s, want an allowance and a denial", status, text)
		}
	})
	for _, secret := range []string{ci, "garbage"} {
		if strings.Contains(s.gateway.Log(), secret) {
			t.Error("the log holds a token")
		}
	}
}

// denyTokenReview takes back what AllowTokenReview gave.
func (s *scene) denyTokenReview(t *testing.T) {
	t.Helper()
	err := s.client.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), "quaymaster-tokenreview", meta.DeleteOptions{})
	if err != nil {
		t.Logf("the grant stays: %v", err)
	}
}
