package kms_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/kms"
)

func newKey(t *testing.T) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

func answer(t *testing.T, w http.ResponseWriter, contentType string, value any) {
	t.Helper()
	w.Header().Set("Content-Type", contentType)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		t.Error(err)
	}
}

// resolve looks the key up as a policy does.
func resolve(t *testing.T, providers kms.Providers, uri string) (verify.Authority, error) {
	t.Helper()
	store, err := trust.New(trust.Options{KMS: providers})
	if err != nil {
		t.Fatal(err)
	}
	return store.Snapshot().Resolve(t.Context(), verify.Authority{Name: "kms", Key: &verify.Key{Ref: uri}})
}

func checkKey(t *testing.T, authority verify.Authority, want crypto.PublicKey) {
	t.Helper()
	block, _ := pem.Decode(authority.Key.PEM)
	if block == nil {
		t.Fatalf("the key is no PEM: %q", authority.Key.PEM)
	}
	got, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !want.(*ecdsa.PublicKey).Equal(got) {
		t.Error("the key is not the one that the service holds")
	}
}

// TestVault speaks HashiCorp Vault's HTTP API for the transit engine.
func TestVault(t *testing.T) {
	key, der := newKey(t)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Vault-Token") != "token":
			http.Error(w, `{"errors":["permission denied"]}`, http.StatusForbidden)
		case r.URL.Path != "/v1/transit/keys/release":
			http.Error(w, `{"errors":[]}`, http.StatusNotFound)
		default:
			answer(t, w, "application/json", map[string]any{"data": map[string]any{
				"latest_version": 2,
				"keys":           map[string]any{"1": map[string]any{"public_key": "old"}, "2": map[string]any{"public_key": text, "name": "P-256"}},
			}})
		}
	}))
	defer server.Close()
	t.Setenv("VAULT_ADDR", server.URL)
	t.Setenv("VAULT_TOKEN", "token")
	authority, err := resolve(t, kms.Providers{}, "hashivault://release")
	if err != nil {
		t.Fatal(err)
	}
	checkKey(t, authority, key.Public())

	if _, err := resolve(t, kms.Providers{}, "hashivault://other"); err == nil {
		t.Error("a key that is not there was found")
	}
	t.Setenv("VAULT_TOKEN", "stolen")
	if _, err := resolve(t, kms.Providers{}, "hashivault://release"); err == nil {
		t.Error("a key was read without permission")
	}
}

// TestAWS speaks AWS KMS's JSON 1.1 protocol.
func TestAWS(t *testing.T) {
	key, der := newKey(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const contentType = "application/x-amz-json-1.1"
		var request struct{ KeyID string }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.KeyID != "alias/release" {
			w.Header().Set("X-Amzn-ErrorType", "NotFoundException")
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		algorithms := []string{"ECDSA_SHA_256"}
		switch r.Header.Get("X-Amz-Target") {
		case "TrentService.GetPublicKey":
			answer(t, w, contentType, map[string]any{"KeyId": "k", "PublicKey": der, "KeyUsage": "SIGN_VERIFY", "SigningAlgorithms": algorithms})
		case "TrentService.DescribeKey":
			answer(t, w, contentType, map[string]any{"KeyMetadata": map[string]any{"KeyId": "k", "SigningAlgorithms": algorithms}})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_CA_BUNDLE": bundle, "AWS_REGION": "eu-central-1",
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	host := strings.TrimPrefix(server.URL, "https://")
	providers := kms.Providers{AllowAnyEndpoint: true}
	authority, err := resolve(t, providers, "awskms://"+host+"/alias/release")
	if err != nil {
		t.Fatal(err)
	}
	checkKey(t, authority, key.Public())
	if _, err := resolve(t, providers, "awskms://"+host+"/alias/other"); err == nil {
		t.Error("a key that is not there was found")
	}
	if _, err := resolve(t, kms.Providers{}, "awskms://"+host+"/alias/release"); err == nil {
		t.Error("an endpoint that the policy names was asked, and nobody allowed it")
	}
}

func TestEndpoints(t *testing.T) {
	for _, uri := range []string{
		"azurekms://evil.example/key", "azurekms://vault.azure.net.evil.example/key",
		"azurekms://evilvault.azure.net.example/key", "awskms://169.254.169.254/alias/key",
	} {
		_, err := kms.Providers{}.PublicKey(t.Context(), uri)
		if err == nil || !strings.Contains(err.Error(), "allow endpoints of your own") {
			t.Errorf("%s: got %v, want a refusal of the host", uri, err)
		}
	}
}

// TestSlowProvider: a provider that does not listen to the context does not
// hold up whoever asks.
func TestSlowProvider(t *testing.T) {
	asked, release := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-release
	}))
	defer server.Close()
	defer close(release)
	t.Setenv("VAULT_ADDR", server.URL)
	t.Setenv("VAULT_TOKEN", "token")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	start := time.Now()
	if _, err := (kms.Providers{}).PublicKey(ctx, "hashivault://release"); err == nil {
		t.Error("got a key from a service that does not answer")
	}
	if waited := time.Since(start); waited > 20*time.Second {
		t.Errorf("waited %s", waited)
	}
}

// A policy names a key by its URI; the provider is asked once, and again at an
// interval.
func Example() {
	store, err := trust.New(trust.Options{KMS: kms.Providers{}})
	if err != nil {
		panic(err)
	}
	_, err = store.Snapshot().Resolve(context.Background(), verify.Authority{
		Name: "release", Key: &verify.Key{Ref: "awskms://evil.example/alias/release"},
	})
	fmt.Println(err)
	// Output:
	// authority release: look up key awskms://evil.example/alias/release: awskms://evil.example/alias/release names the endpoint evil.example; write awskms:///KEY, or allow endpoints of your own
}
