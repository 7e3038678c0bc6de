package distribution

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/quaymaster/quaymaster/test/peers/notary"
)

// way is a signer and quaymaster's flags to trust it.
type way struct {
	name string
	sign func(t *testing.T, h *privateRegistry, image string)
	// trust are the flags that name the signer, distrust those that name another
	// one, and wrong is the code for the latter.
	trust, distrust []string
	wrong           string
	format          string // of the proof
	// referrer is the artifact type under the referrers tag; empty: there is
	// none, but a tag of cosign's.
	referrer string
}

func ways(c *crew) []way {
	key := func(name string) []string { return []string{"--key", c.file(name + ".pub"), "--insecure-ignore-tlog"} }
	ca := func(name string) []string { return []string{"--notation-cert", c.file(name + ".pem")} }
	byNotation := func(mediaType string) func(*testing.T, *privateRegistry, string) {
		return func(t *testing.T, h *privateRegistry, image string) { notarize(t, c.notary, h.host, image, mediaType) }
	}
	const notationType = "application/vnd.cncf.notary.signature"
	return []way{
		{
			name: "cosign 2 tag", trust: key("signer"), distrust: key("stranger"), wrong: "wrong-key", format: "cosign",
			sign: func(t *testing.T, h *privateRegistry, image string) {
				c.cosign2.With(h.login).Must(t, "sign", "--key", c.file("signer.key"), "--tlog-upload=false", "--new-bundle-format=false", image)
			},
		},
		{
			name: "cosign 3 bundle", trust: key("signer"), distrust: key("stranger"), wrong: "wrong-key", format: "bundle",
			sign: func(t *testing.T, h *privateRegistry, image string) {
				c.cosign3.With(h.login).Must(t, "sign", "--key", c.file("signer.key"), "--use-signing-config=false", "--tlog-upload=false", image)
			},
			referrer: "application/vnd.dev.sigstore.bundle.v0.3+json",
		},
		{
			name: "notation JWS", trust: ca("notary"), distrust: ca("stranger"), wrong: "untrusted-chain", format: "notation",
			sign: byNotation(notary.JWS), referrer: notationType,
		},
		{
			name: "notation COSE", trust: ca("notary"), distrust: ca("stranger"), wrong: "untrusted-chain", format: "notation",
			sign: byNotation(notary.COSE), referrer: notationType,
		},
	}
}

// TestPrivateRegistries musters the programs once, for that takes a while.
func TestPrivateRegistries(t *testing.T) {
	c := muster(t)
	for _, kind := range privateRegistries {
		t.Run(kind.name, func(t *testing.T) {
			h := kind.open(t, c)
			bare := h.push(t, "app", "bare")
			for _, w := range ways(c) {
				t.Run(w.name, func(t *testing.T) { h.tryWay(t, w, bare) })
			}
		})
	}
	t.Run("token faults", c.tryFaults)
	t.Run("tokens are counted", c.tryCounting)
	t.Run("no token server", c.tryNoOffice)
}

// tryWay has an image signed one way, and asks about it, for better and worse.
func (h *privateRegistry) tryWay(t *testing.T, w way, bare string) {
	signed := h.push(t, "app", strings.ReplaceAll(strings.ToLower(w.name), " ", "-"))
	w.sign(t, h, signed)
	if w.referrer == "" {
		h.crane.With(h.login).Must(t, "manifest", tagOf(signed, ".sig"))
	} else if types := h.referrers(t, signed); !slices.Equal(types, []string{w.referrer}) {
		t.Errorf("the referrers tag lists %q, want %s alone", types, w.referrer)
	}
	wrong, nobody := h.loggedIn(t, user, "not the password"), "DOCKER_CONFIG="+t.TempDir()
	for _, row := range []struct {
		reason string
		login  string
		trust  []string
		image  string
		status int
		code   string
	}{
		{"signed", h.login, w.trust, signed, 0, "verified"},
		{"not signed", h.login, w.trust, bare, 1, "unsigned"},
		{"signed by another identity", h.login, w.distrust, signed, 1, w.wrong},
		{"signed, asked with a wrong password", wrong, w.trust, signed, 3, "access-refused"},
		{"not signed, asked with a wrong password", wrong, w.trust, bare, 3, "access-refused"},
		{"signed, asked without a login", nobody, w.trust, signed, 3, "access-refused"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			h.gangway.take()
			v := h.ask(t, row.login, append(slices.Clone(row.trust), row.image)...)
			v.expect(t, row.status, row.code)
			if row.status == 0 && !slices.Equal(v.formats(), []string{w.format}) {
				t.Errorf("proved by %q, want %s", v.formats(), w.format)
			}
			h.checkCalls(t, h.gangway.take())
		})
	}
}

// expect compares the exit status and the code of every image.
func (v *verdict) expect(t *testing.T, status int, codes ...string) {
	t.Helper()
	if v.status != status || !slices.Equal(v.codes(), codes) {
		t.Errorf("exit status %d and %q, want %d and %q:\n%s", v.status, v.codes(), status, codes, v.said)
	}
	if !slices.Contains(codes, "unsigned") && strings.Contains(v.said, "unsigned") {
		t.Errorf("it is called unsigned, without a result that shows it:\n%s", v.said)
	}
}

// checkCalls holds quaymaster to the scheme that the registry asked for: where
// there is a token server, the registry never sees the password.
func (h *privateRegistry) checkCalls(t *testing.T, calls []call) {
	t.Helper()
	scheme := "Basic"
	if h.office != nil {
		scheme = "Bearer"
	}
	if len(calls) == 0 {
		t.Error("no requests")
	}
	for _, c := range calls {
		if got := c.scheme(); got != "" && got != scheme {
			t.Errorf("%s came with %s, want %s", c.request, got, scheme)
		}
		if strings.Contains(c.query, password) || h.office != nil && c.carriesPassword() {
			t.Errorf("%s came with the password", c.request)
		}
		if strings.Contains(c.request, "/referrers/") && c.status != http.StatusNotFound {
			t.Errorf("%s: answered %d; this registry was to have no referrers API", c.request, c.status)
		}
		if !strings.HasPrefix(c.request, "GET ") && !strings.HasPrefix(c.request, "HEAD ") {
			t.Errorf("%s: verification only reads", c.request)
		}
	}
}

// carriesPassword reports whether any header has it, as it is or as in Basic.
func (c call) carriesPassword() bool {
	_, secret, _ := (&http.Request{Header: c.header}).BasicAuth()
	for _, values := range c.header {
		if strings.Contains(strings.Join(values, "\n"), password) {
			return true
		}
	}
	return secret == password
}

// tryFaults hands out tokens with exactly one thing wrong.
func (c *crew) tryFaults(t *testing.T) {
	h := openTokens(t, c, jose.ES256)
	w := ways(c)[0]
	signed := h.push(t, "app", "signed")
	w.sign(t, h, signed)
	for _, row := range []struct {
		reason string
		fault  fault
		status int
		code   string
	}{
		{"a good token", fault{}, 0, "verified"},
		{"a token for another repository", fault{change: func(c *claims) { c.eachAccess(func(a *access) { a.Name = "other" }) }}, 3, "access-refused"},
		{"a token for pushing only", fault{change: func(c *claims) { c.eachAccess(func(a *access) { a.Actions = []string{"push"} }) }}, 3, "access-refused"},
		{"a token for nothing", fault{change: func(c *claims) { c.Access = nil }}, 3, "access-refused"},
		{"a token for another service", fault{change: func(c *claims) { c.Audience = "another quay" }}, 3, "access-refused"},
		{"a token of another issuer", fault{change: func(c *claims) { c.Issuer = "another office" }}, 3, "access-refused"},
		{"a token that has expired", fault{change: func(c *claims) { c.Expiry = c.IssuedAt - int64(leeway.Seconds()) }}, 3, "access-refused"},
		{"a token that is not valid yet", fault{change: func(c *claims) { c.NotBefore = c.IssuedAt + int64(leeway.Seconds()) }}, 3, "access-refused"},
		{"a token signed by another key", fault{forger: newSigningKey(t, jose.ES256)}, 3, "access-refused"},
		{"a token server that refuses", fault{status: http.StatusForbidden}, 3, "access-refused"},
		{"a token server that is out of order", fault{status: http.StatusInternalServerError}, 3, "registry-unavailable"},
		{"a token server under repair", fault{status: http.StatusServiceUnavailable}, 3, "registry-unavailable"},
		{"a good token again", fault{}, 0, "verified"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			h.office.set(row.fault)
			h.gangway.take()
			v := h.ask(t, h.login, append(slices.Clone(w.trust), signed)...)
			v.expect(t, row.status, row.code)
			h.checkCalls(t, h.gangway.take())
			if len(h.office.petitions()) == 0 {
				t.Error("no token was requested")
			}
		})
	}
}

// tryCounting counts what a run of quaymaster costs the token server.
func (c *crew) tryCounting(t *testing.T) {
	h := openTokens(t, c, jose.ES256)
	w := ways(c)[0]
	images := map[string]string{}
	for _, name := range []string{"app:1", "app:2", "app:3", "db:1"} {
		repository, tag, _ := strings.Cut(name, ":")
		images[name] = h.push(t, repository, tag)
		w.sign(t, h, images[name])
	}
	for _, row := range []struct {
		reason string
		images []string
		scopes []string
	}{
		{"one image", []string{"app:1"}, []string{"repository:app:pull"}},
		{"two images of one repository", []string{"app:1", "app:2"}, []string{"repository:app:pull"}},
		{"three images of one repository", []string{"app:1", "app:2", "app:3"}, []string{"repository:app:pull"}},
		{"images of two repositories", []string{"app:1", "db:1", "app:2"}, []string{"repository:app:pull", "repository:db:pull"}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			h.office.set(fault{})
			h.gangway.take()
			args, codes := slices.Clone(w.trust), []string{}
			for _, name := range row.images {
				args, codes = append(args, images[name]), append(codes, "verified")
			}
			h.ask(t, h.login, args...).expect(t, 0, codes...)

			var scopes []string
			for _, p := range h.office.petitions() {
				scopes = append(scopes, p.scopes...)
				if !p.secret || p.service != service {
					t.Errorf("asked for %q with the password: %v, for the service %q", p.scopes, p.secret, p.service)
				}
			}
			slices.Sort(scopes)
			if !slices.Equal(scopes, row.scopes) {
				t.Errorf("tokens for %q, want one for each of %q", scopes, row.scopes)
			}
			calls := h.gangway.take()
			h.checkCalls(t, calls)
			h.checkChallenges(t, calls)
		})
	}
}

// checkChallenges wants a challenge before the token only: concurrent requests
// without a token may meet one each, and never a second.
func (h *privateRegistry) checkChallenges(t *testing.T, calls []call) {
	t.Helper()
	challenges, tokens := map[string]int{}, 0
	for _, c := range calls {
		if c.status == http.StatusUnauthorized {
			challenges[c.request]++
		}
		switch c.scheme() {
		case "Bearer":
			tokens++
			if c.status == http.StatusUnauthorized {
				t.Errorf("%s: a good token was refused", c.request)
			}
		case "":
			// distribution answers for an unknown endpoint
			// before it authenticates the client.
			if c.status != http.StatusUnauthorized && !strings.Contains(c.request, "/referrers/") {
				t.Errorf("%s: answered %d without a token", c.request, c.status)
			}
		}
	}
	for request, n := range challenges {
		if n > 1 {
			t.Errorf("%s was challenged %d times", request, n)
		}
	}
	if len(challenges) == 0 || tokens == 0 {
		t.Errorf("%d challenges and %d answered ones: no token was required", len(challenges), tokens)
	}
	t.Logf("%d requests, %d challenges", len(calls), len(challenges))
}

// tryNoOffice closes the token server: the images cannot be verified.
func (c *crew) tryNoOffice(t *testing.T) {
	h := openTokens(t, c, jose.ES256)
	bare, signed := h.push(t, "app", "bare"), h.push(t, "app", "signed")
	w := ways(c)[2]
	w.sign(t, h, signed)
	h.ask(t, h.login, append(slices.Clone(w.trust), signed)...).expect(t, 0, "verified")
	h.office.server.Close()
	h.gangway.take()
	for _, image := range []string{signed, bare} {
		v := h.ask(t, h.login, append(slices.Clone(w.trust), image)...)
		v.expect(t, 3, "registry-unavailable")
		if address := strings.TrimPrefix(h.office.server.URL, "http://"); !strings.Contains(v.record, address) {
			t.Errorf("the record does not name the server that is down, %s:\n%s", address, v.said)
		}
	}
	h.checkCalls(t, h.gangway.take())
}
