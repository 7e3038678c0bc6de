package samples

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
)

const vaultToken = "s.ahoy"

// vault is the part of the transit engine of HashiCorp Vault's HTTP API, version
// 1, that cosign and quaymaster ask for a key on P-256: the public key, and a
// signature over a SHA-256 digest.
type vault struct {
	url  string
	keys map[string]*ecdsa.PrivateKey
}

func newVault(t testing.TB) *vault {
	t.Helper()
	v := &vault{keys: map[string]*ecdsa.PrivateKey{}}
	for _, name := range []string{signer, stranger} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check(t, err)
		v.keys[name] = key
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/transit/keys/{name}", v.with(v.public))
	mux.HandleFunc("PUT /v1/transit/sign/{name}/{hash}", v.with(v.sign))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	v.url = server.URL
	return v
}

// with asks for the token, finds the key and writes the answer as Vault does.
func (v *vault) with(answer func(*ecdsa.PrivateKey, *http.Request) (map[string]any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		key := v.keys[r.PathValue("name")]
		if key == nil || r.Header.Get("X-Vault-Token") != vaultToken {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]any{"errors": []string{"permission denied"}})
			return
		}
		data, err := answer(key, r)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]any{"errors": []string{err.Error()}})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"request_id": "1", "data": data})
	}
}

func (v *vault) public(key *ecdsa.PrivateKey, r *http.Request) (map[string]any, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return map[string]any{
		"name": r.PathValue("name"), "type": "ecdsa-p256", "latest_version": 1, "supports_signing": true,
		"keys": map[string]any{"1": map[string]any{"name": "P-256", "public_key": string(text)}},
	}, nil
}

func (v *vault) sign(key *ecdsa.PrivateKey, r *http.Request) (map[string]any, error) {
	var asked struct{ Input []byte }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	signature, err := key.Sign(rand.Reader, asked.Input, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return map[string]any{"signature": "vault:v1:" + encode(signature)}, nil
}
