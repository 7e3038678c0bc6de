package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

func TestProviders(t *testing.T) {
	for _, known := range Names() {
		if source, err := Named(known, os.Getenv); err != nil || source.Keychain == nil {
			t.Errorf("provider %s: %v", known, err)
		}
	}
	if _, err := Named("unknown", os.Getenv); err == nil {
		t.Error("an unknown provider is accepted")
	}
}

// TestGoogleCredentialOutlivesItsRequest: a credential that was found is renewed for later
// requests, and the answer that there is none does not last.
func TestGoogleCredentialOutlivesItsRequest(t *testing.T) {
	down, given := true, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		given++
		// So little time that it is renewed whenever it is asked for.
		_, _ = fmt.Fprintf(w, `{"issued_token_type":"urn:ietf:params:oauth:token-type:access_token","access_token":"%d","token_type":"Bearer","expires_in":1}`, given)
	}))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	subject, file := filepath.Join(folder, "subject"), filepath.Join(folder, "credentials")
	settings, err := json.Marshal(map[string]any{
		"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": server.URL, "credential_source": map[string]string{"file": subject},
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{subject: []byte("token"), file: settings} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	t.Setenv("PATH", folder) // without gcloud
	source, err := Named("google", os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason, host string
		down, given  bool
	}{
		{"no server answers", "gcr.io", true, false},
		{"a server answers", "gcr.io", false, true},
		{"the first caller is gone", "europe-docker.pkg.dev", false, true},
		{"a region's registry", "eu.gcr.io", false, true},
		{"the domain in front of another", "gcr.io.evil.test", false, false},
		{"the domain at the end of another word", "evilgcr.io", false, false},
	} {
		down = c.down
		registry, err := name.NewRegistry(c.host)
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		got, err := authn.Resolve(ctx, source.Keychain, registry)
		if err != nil || (got != authn.Anonymous) != c.given {
			t.Fatalf("%s: given %t, want %t: %v", c.reason, got != authn.Anonymous, c.given, err)
		}
		if config, err := authn.Authorization(ctx, got); err != nil || c.given && config.Password != fmt.Sprint(given) {
			t.Errorf("%s: %v", c.reason, err)
		}
		leave()
	}
}
