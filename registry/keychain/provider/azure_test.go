package provider

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// entra answers for Entra ID and for registries, as both document their protocols.
type entra struct {
	refuse string              // requests to this path are refused
	sent   map[string][]string // the fields of each request with a body, by host and path
}

func (e *entra) Do(request *http.Request) (*http.Response, error) {
	at := request.URL.Host + request.URL.Path
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		fields, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, err
		}
		e.sent[at] = append(e.sent[at], fields.Get("client_secret")+fields.Get("client_assertion")+fields.Get("access_token"), fields.Get("scope")+fields.Get("tenant"))
	}
	status, text := http.StatusOK, `{}`
	login := "https://" + request.URL.Host
	switch {
	case e.refuse != "" && strings.HasSuffix(request.URL.Path, e.refuse):
		status = http.StatusForbidden
	case strings.HasSuffix(request.URL.Path, "/openid-configuration"):
		text = fmt.Sprintf(`{"token_endpoint":"%[1]s/tenant/oauth2/v2.0/token","authorization_endpoint":"%[1]s/tenant/authorize","issuer":"%[1]s/tenant/v2.0"}`, login)
	case strings.HasSuffix(request.URL.Path, "/discovery/instance"):
		text = fmt.Sprintf(`{"tenant_discovery_endpoint":"%[1]s/tenant/v2.0/.well-known/openid-configuration",
			"metadata":[{"preferred_network":"%[2]s","preferred_cache":"%[2]s","aliases":["%[2]s"]}]}`, login, request.URL.Host)
	case strings.HasSuffix(request.URL.Path, "/token"):
		text = `{"token_type":"Bearer","expires_in":3600,"access_token":"entra"}`
	case request.URL.Path == "/oauth2/exchange":
		text = `{"refresh_token":"refresh"}`
	default:
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: request}, nil
}

func TestAzureCredential(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	identity := map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client"}
	with := func(key, value string) map[string]string {
		made := maps.Clone(identity)
		made[key] = value
		return made
	}
	const public, scope = "login.microsoftonline.com/tenant/oauth2/v2.0/token", "https://containerregistry.azure.net/.default"
	for _, c := range []struct {
		reason, host string
		environment  map[string]string
		refuse       string
		login        string // the endpoint that issues the token
		sent         string // the secret that it receives
		given        bool
	}{
		{"a client secret", "team.azurecr.io", with("AZURE_CLIENT_SECRET", "secret"), "", public, "secret", true},
		{"a federated token", "team.azurecr.io", with("AZURE_FEDERATED_TOKEN", "federated"), "", public, "federated", true},
		{"a workload identity's file", "team.azurecr.io", with("AZURE_FEDERATED_TOKEN_FILE", file), "", public, "from the file", true},
		{"the cloud of China", "team.azurecr.cn", with("AZURE_CLIENT_SECRET", "secret"), "", "login.chinacloudapi.cn/tenant/oauth2/v2.0/token", "secret", true},
		{"the cloud of the government", "team.azurecr.us", with("AZURE_CLIENT_SECRET", "secret"), "", "login.microsoftonline.us/tenant/oauth2/v2.0/token", "secret", true},
		{"Entra ID refuses", "team.azurecr.io", with("AZURE_CLIENT_SECRET", "secret"), "/token", public, "secret", false},
		{"the registry refuses", "team.azurecr.io", with("AZURE_CLIENT_SECRET", "secret"), "/exchange", public, "secret", false},
		{"the domain in front of another", "team.azurecr.io.evil.test", with("AZURE_CLIENT_SECRET", "secret"), "", "", "", false},
		{"the domain at the end of another word", "evilazurecr.io", with("AZURE_CLIENT_SECRET", "secret"), "", "", "", false},
		{"another port is another host", "team.azurecr.io:8443", with("AZURE_CLIENT_SECRET", "secret"), "", "", "", false},
		{"another registry", "registry.test", with("AZURE_CLIENT_SECRET", "secret"), "", "", "", false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			for _, key := range []string{"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST"} {
				t.Setenv(key, c.environment[key])
			}
			if token, ok := c.environment["AZURE_FEDERATED_TOKEN"]; ok {
				t.Setenv("AZURE_FEDERATED_TOKEN", token)
			}
			service := &entra{refuse: c.refuse, sent: map[string][]string{}}
			registry, err := name.NewRegistry(c.host)
			if err != nil {
				t.Fatal(err)
			}
			found, err := authn.Resolve(t.Context(), &azureCredential{transport: service, env: os.Getenv}, registry)
			if err != nil || (found != authn.Anonymous) != c.given {
				t.Fatalf("given %t, want %t: %v; sent %v", found != authn.Anonymous, c.given, err, service.sent)
			}
			if got := service.sent[c.login]; c.login != "" && (len(got) < 2 || got[0] != c.sent || !slices.Contains(strings.Fields(got[1]), scope)) {
				t.Errorf("the login received %q", service.sent)
			}
			if c.login == "" && len(service.sent) != 0 {
				t.Errorf("a token was requested for %s: %v", c.host, service.sent)
			}
			if !c.given {
				return
			}
			config, err := authn.Authorization(t.Context(), found)
			if err != nil || config.IdentityToken != "refresh" {
				t.Errorf("credential %+v, %v", config, err)
			}
			if got, want := service.sent[c.host+"/oauth2/exchange"], []string{"entra", "tenant"}; !slices.Equal(got, want) {
				t.Errorf("the registry received %q, want %q", got, want)
			}
		})
	}
}
