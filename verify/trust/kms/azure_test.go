package kms_test

import (
	"crypto"
	"crypto/ecdsa"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"testing"
)

// serveAzure runs Azure Key Vault's REST API (7.x: GET /keys/NAME/VERSION and
// POST /keys/NAME/VERSION/sign) with its challenge, and the part of Entra ID
// that gives tokens for client secrets.
func serveAzure(t testing.TB, host string, s *safe) {
	t.Helper()
	name := strings.TrimSuffix(host, ":443")
	_, resource, _ := strings.Cut(name, ".")
	serveEntra(t, "https://"+resource+"/.default")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /keys/{name}/{version...}", func(w http.ResponseWriter, r *http.Request) {
		if key := azureKey(w, r, s, resource); key != nil {
			azureAnswer(w, http.StatusOK, map[string]any{
				"key":        azureJWK(key, "https://"+name+"/keys/"+r.PathValue("name")+"/1"),
				"attributes": map[string]any{"enabled": true},
			})
		}
	})
	sign := func(w http.ResponseWriter, r *http.Request) {
		if key := azureKey(w, r, s, resource); key != nil {
			azureSign(w, r, key)
		}
	}
	mux.HandleFunc("POST /keys/{name}/{version}/sign", sign)
	mux.HandleFunc("POST /keys/{name}/sign", sign)
	earth.serve(t, host, mux)
}

func azureKey(w http.ResponseWriter, r *http.Request, s *safe, resource string) crypto.Signer {
	if r.Header.Get("Authorization") != "Bearer "+azureToken {
		w.Header().Set("WWW-Authenticate",
			`Bearer authorization="https://login.microsoftonline.com/`+azureTenant+`", resource="https://`+resource+`"`)
		azureFail(w, http.StatusUnauthorized, "Unauthorized", "AKV10000: Request is missing a Bearer or PoP token.")
		return nil
	}
	versions, allowed := s.versions(r.PathValue("name"))
	if !allowed {
		azureFail(w, http.StatusForbidden, "Forbidden", "The user, group or application does not have keys get permission")
		return nil
	}
	key, ok := pick(versions, strings.Trim(r.PathValue("version"), "/"))
	if !ok {
		azureFail(w, http.StatusNotFound, "KeyNotFound", "A key with (name/id) "+r.PathValue("name")+" was not found in this key vault.")
		return nil
	}
	return key
}

func azureAnswer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func azureFail(w http.ResponseWriter, status int, code, message string) {
	azureAnswer(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

func azureJWK(key crypto.Signer, id string) map[string]any {
	public := key.Public().(*ecdsa.PublicKey)
	point, err := public.Bytes() // 4, X, Y
	if err != nil {
		panic(err) // the keys are of our own making
	}
	half := len(point) / 2
	return map[string]any{
		"kid": id, "kty": "EC", "crv": "P-256", "key_ops": []string{"sign", "verify"},
		"x": base64.RawURLEncoding.EncodeToString(point[1 : 1+half]),
		"y": base64.RawURLEncoding.EncodeToString(point[1+half:]),
	}
}

func azureSign(w http.ResponseWriter, r *http.Request, key crypto.Signer) {
	var asked struct {
		Algorithm string `json:"alg"`
		Value     string `json:"value"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Algorithm != "ES256" {
		azureFail(w, http.StatusBadRequest, "BadParameter", "want ES256")
		return
	}
	digest, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(asked.Value, "="))
	if err != nil {
		azureFail(w, http.StatusBadRequest, "BadParameter", err.Error())
		return
	}
	der, err := signDigest(key, digest)
	if err != nil {
		azureFail(w, http.StatusInternalServerError, "InternalError", err.Error())
		return
	}
	var pair struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &pair); err != nil {
		azureFail(w, http.StatusInternalServerError, "InternalError", err.Error())
		return
	}
	raw := append(pair.R.FillBytes(make([]byte, 32)), pair.S.FillBytes(make([]byte, 32))...)
	azureAnswer(w, http.StatusOK, map[string]any{"value": base64.RawURLEncoding.EncodeToString(raw)})
}

// serveEntra returns a token for a scope in exchange for the client's secret.
func serveEntra(t testing.TB, scope string) {
	t.Helper()
	const base = "https://login.microsoftonline.com/" + azureTenant
	mux := http.NewServeMux()
	mux.HandleFunc("GET /common/discovery/instance", func(w http.ResponseWriter, _ *http.Request) {
		azureAnswer(w, http.StatusOK, map[string]any{
			"tenant_discovery_endpoint": base + "/v2.0/.well-known/openid-configuration", "api-version": "1.1",
			"metadata": []any{map[string]any{
				"preferred_network": "login.microsoftonline.com", "preferred_cache": "login.windows.net",
				"aliases": []string{"login.microsoftonline.com", "login.windows.net"},
			}},
		})
	})
	mux.HandleFunc("GET /"+azureTenant+"/v2.0/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		azureAnswer(w, http.StatusOK, map[string]any{
			"token_endpoint": base + "/oauth2/v2.0/token", "authorization_endpoint": base + "/oauth2/v2.0/authorize", "issuer": base + "/v2.0",
		})
	})
	mux.HandleFunc("POST /"+azureTenant+"/oauth2/v2.0/token", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") != azureClient || r.FormValue("client_secret") != azureSecret || !strings.Contains(r.FormValue("scope"), scope) {
			azureAnswer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client", "error_description": "AADSTS7000215"})
			return
		}
		azureAnswer(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3599, "access_token": azureToken})
	})
	earth.serve(t, entraHost, mux)
}
