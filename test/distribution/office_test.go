package distribution

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	service = "quay"
	issuer  = "privateRegistry office"
	// leeway is more than the minute that distribution grants to clocks.
	leeway = 2 * time.Minute
)

// office is a token server. It returns the requested token in exchange for the
// password, and otherwise a token without access.
type office struct {
	server *httptest.Server
	key    *signingKey

	mu    sync.Mutex
	asked []petition
	fault fault
}

// petition is a request for a token.
type petition struct {
	scopes  []string
	service string
	secret  bool // it carried the right password
}

// fault changes the office's answers: its tokens or, if it has a status, all.
type fault struct {
	status int
	change func(*claims)
	forger *signingKey // signs in place of the office
}

// claims are those of distribution's token.
type claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  string   `json:"aud"`
	Expiry    int64    `json:"exp"`
	NotBefore int64    `json:"nbf"`
	IssuedAt  int64    `json:"iat"`
	ID        string   `json:"jti"`
	Access    []access `json:"access"`
}

type access struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Actions []string `json:"actions"`
}

func openOffice(t *testing.T, algorithm jose.SignatureAlgorithm) *office {
	t.Helper()
	o := &office{key: newSigningKey(t, algorithm)}
	o.server = httptest.NewServer(o)
	t.Cleanup(o.server.Close)
	return o
}

// host is a name and no address: crane and cosign take a realm that is a
// loopback address for an attack, unless it is the registry itself.
func (o *office) host() string {
	return strings.Replace(strings.TrimPrefix(o.server.URL, "http://"), "127.0.0.1", "localhost", 1)
}

func (o *office) realm() string { return "http://" + o.host() + "/token" }

// set makes the office answer so from now on, and clears its record of requests.
func (o *office) set(f fault) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fault, o.asked = f, nil
}

func (o *office) petitions() []petition {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.asked)
}

// ServeHTTP answers GET /token?service=S&scope=SCOPE...
func (o *office) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Method != http.MethodGet { // clients ask again so
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	name, secret, given := q.BasicAuth()
	known := name == user && secret == password
	p := petition{service: q.FormValue("service"), secret: known}
	for _, scopes := range q.Form["scope"] {
		p.scopes = append(p.scopes, strings.Fields(scopes)...)
	}
	o.mu.Lock()
	o.asked = append(o.asked, p)
	f := o.fault
	o.mu.Unlock()
	switch {
	case f.status != 0:
		w.WriteHeader(f.status)
		return
	case given && !known:
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	token, err := o.token(p, f)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "expires_in": 300}) // the client went away
}

// eachAccess changes what a token permits; one without a password permits nothing.
func (c *claims) eachAccess(change func(*access)) {
	for i := range c.Access {
		change(&c.Access[i])
	}
}

func (o *office) token(p petition, f fault) (string, error) {
	now := time.Now()
	c := claims{
		Issuer: issuer, Audience: p.service, ID: rand.Text(),
		NotBefore: now.Unix(), IssuedAt: now.Unix(), Expiry: now.Add(5 * time.Minute).Unix(),
	}
	if p.secret {
		c.Subject = user
		for _, scope := range p.scopes {
			if part := strings.SplitN(scope, ":", 3); len(part) == 3 {
				c.Access = append(c.Access, access{Type: part[0], Name: part[1], Actions: strings.Split(part[2], ",")})
			}
		}
	}
	if f.change != nil {
		f.change(&c)
	}
	by := o.key
	if f.forger != nil {
		by = f.forger
	}
	return by.sign(c)
}

// signingKey is a key and its certificate, for signing tokens.
type signingKey struct {
	algorithm   jose.SignatureAlgorithm
	key         crypto.Signer
	certificate *x509.Certificate
}

func newSigningKey(t *testing.T, algorithm jose.SignatureAlgorithm) *signingKey {
	t.Helper()
	p := &signingKey{algorithm: algorithm}
	var err error
	if algorithm == jose.RS256 {
		p.key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: issuer},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, p.key.Public(), p.key)
	check(t, err)
	p.certificate, err = x509.ParseCertificate(der)
	check(t, err)
	return p
}

// pem is distribution's rootcertbundle.
func (p *signingKey) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.certificate.Raw})
}

func (p *signingKey) sign(c claims) (string, error) {
	payload, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	options := new(jose.SignerOptions).WithType("JWT").
		WithHeader("x5c", []string{base64.StdEncoding.EncodeToString(p.certificate.Raw)})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: p.algorithm, Key: p.key}, options)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
