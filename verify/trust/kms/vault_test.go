package kms_test

import (
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// serveVault runs the transit engine of HashiCorp Vault's HTTP API, version 1:
// GET /v1/transit/keys/NAME and PUT /v1/transit/sign/NAME[/HASH].
func serveVault(t testing.TB, s *safe) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/transit/keys/{name}", func(w http.ResponseWriter, r *http.Request) {
		if versions := vaultKey(w, r, s); versions != nil {
			vaultAnswer(w, vaultVersions(r.PathValue("name"), versions))
		}
	})
	sign := func(w http.ResponseWriter, r *http.Request) {
		if versions := vaultKey(w, r, s); versions != nil {
			vaultSign(w, r, versions)
		}
	}
	mux.HandleFunc("PUT /v1/transit/sign/{name}", sign)
	mux.HandleFunc("PUT /v1/transit/sign/{name}/{hash}", sign)
	earth.serve(t, vaultHost, mux)
}

// vaultKey finds the key, or answers as Vault does without one.
func vaultKey(w http.ResponseWriter, r *http.Request, s *safe) []crypto.Signer {
	versions, allowed := s.versions(r.PathValue("name"))
	switch {
	case r.Header.Get("X-Vault-Token") != vaultToken, !allowed:
		vaultFail(w, http.StatusForbidden, "1 error occurred:\n\t* permission denied\n\n")
	case len(versions) == 0:
		vaultFail(w, http.StatusNotFound)
	default:
		return versions
	}
	return nil
}

func vaultFail(w http.ResponseWriter, status int, errors ...string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if errors == nil {
		errors = []string{}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": errors})
}

func vaultAnswer(w http.ResponseWriter, data map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"request_id": "1", "lease_id": "", "renewable": false, "lease_duration": 0, "data": data,
	})
}

func vaultVersions(name string, versions []crypto.Signer) map[string]any {
	kind := "ecdsa-p256"
	keys := map[string]any{}
	for i, key := range versions {
		one := map[string]any{"creation_time": "2026-01-01T00:00:00Z", "name": "P-256", "public_key": publicPEM(key)}
		if public, is := key.Public().(ed25519.PublicKey); is {
			kind = "ed25519"
			one["name"], one["public_key"] = kind, base64.StdEncoding.EncodeToString(public)
		}
		keys[strconv.Itoa(i+1)] = one
	}
	return map[string]any{
		"name": name, "type": kind, "keys": keys, "latest_version": len(versions), "min_decryption_version": 1,
		"min_encryption_version": 0, "supports_signing": true, "exportable": false,
	}
}

func vaultSign(w http.ResponseWriter, r *http.Request, versions []crypto.Signer) {
	var asked struct {
		Input      []byte `json:"input"`
		Prehashed  bool   `json:"prehashed"`
		KeyVersion string `json:"key_version"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		vaultFail(w, http.StatusBadRequest, err.Error())
		return
	}
	key, ok := pick(versions, asked.KeyVersion)
	if !ok {
		vaultFail(w, http.StatusBadRequest, "no such version")
		return
	}
	signature, err := signDigest(key, asked.Input)
	if err != nil {
		vaultFail(w, http.StatusInternalServerError, err.Error())
		return
	}
	version := asked.KeyVersion
	if strings.Trim(version, "0") == "" {
		version = strconv.Itoa(len(versions))
	}
	vaultAnswer(w, map[string]any{"signature": "vault:v" + version + ":" + base64.StdEncoding.EncodeToString(signature)})
}
