package sigstore

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// audience is the audience of Sigstore's tokens.
const audience = "sigstore"

// Issuers are OpenID Connect issuers on one server, distinguished by their paths,
// with one throw-away key: discovery, keys (JWKS) and tokens (JWT, RS256).
type Issuers struct {
	// URL and a path are an issuer.
	URL string
	key *rsa.PrivateKey
}

// NewIssuers serves issuers under paths until the test ends.
func NewIssuers(t testing.TB, paths ...string) *Issuers {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	i := &Issuers{key: key}
	mux := http.NewServeMux()
	for _, path := range paths {
		mux.HandleFunc("GET "+path+"/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, map[string]any{
				"issuer": i.URL + path, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + path + "/auth",
				"token_endpoint": i.URL + path + "/token", "response_types_supported": []string{"id_token"},
				"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
			})
		})
	}
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	i.URL = server.URL
	return i
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Token is one of the issuer with a path, for a subject, with more claims. It is
// good for ten minutes.
func (i *Issuers) Token(t testing.TB, path, subject string, more map[string]any) string {
	t.Helper()
	now := time.Now()
	claims := map[string]any{
		"iss": i.URL + path, "aud": audience, "sub": subject,
		"iat": now.Unix(), "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(10 * time.Minute).Unix(),
	}
	maps.Copy(claims, more)
	head, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": "1"})
	check(t, err)
	body, err := json.Marshal(claims)
	check(t, err)
	signed := encode(head) + "." + encode(body)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	check(t, err)
	return signed + "." + encode(signature)
}
