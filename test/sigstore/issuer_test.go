package sigstore_test

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

const audience = "sigstore"

// issuers are OpenID Connect issuers on one server, told apart by their paths,
// with one throw-away key: discovery, keys (JWKS) and tokens (JWT, RS256).
type issuers struct {
	url string
	key *rsa.PrivateKey
}

// The issuers: two of people, who have mail addresses, and one of workflows.
const (
	people    = "/people"
	strangers = "/strangers"
	workflows = "/workflows"
)

func newIssuers(t testing.TB) *issuers {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	i := &issuers{key: key}
	mux := http.NewServeMux()
	for _, path := range []string{people, strangers, workflows} {
		mux.HandleFunc("GET "+path+"/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, map[string]any{
				"issuer": i.url + path, "jwks_uri": i.url + "/keys", "authorization_endpoint": i.url + path + "/auth",
				"token_endpoint": i.url + path + "/token", "response_types_supported": []string{"id_token"},
				"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
			})
		})
	}
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

// base64Of is base64 as Sigstore writes it.
func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token is of one issuer for a subject.
func (i *issuers) token(t testing.TB, path, subject string, more map[string]any) string {
	t.Helper()
	now := time.Now()
	claims := map[string]any{
		"iss": i.url + path, "aud": audience, "sub": subject,
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

// person is a token for somebody with a mail address.
func (i *issuers) person(t testing.TB, path, mail string) string {
	t.Helper()
	return i.token(t, path, "1234", map[string]any{"email": mail, "email_verified": true})
}

// workflow is a token for a run of a build workflow.
func (i *issuers) workflow(t testing.TB, trigger string) string {
	t.Helper()
	return i.token(t, workflows, "repo:org/app", map[string]any{
		"workflow_ref": "org/app/.github/workflows/release.yml@refs/heads/main",
		"repository":   "org/app", "event_name": trigger, "runner": "github-hosted",
	})
}
