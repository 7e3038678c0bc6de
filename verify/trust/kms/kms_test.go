package kms_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/kms"
)

const wrongKey = policy.Code(verify.WrongKey)

// provider is a key management service and how its keys are named.
type provider struct {
	name  string
	host  string
	serve func(testing.TB, *safe)
	uri   func(key string) string
	// version names one version of a key; nil where a URI cannot.
	version func(key string, version int) string
	any     bool // the URI names a host that must be allowed
}

func providers() []provider {
	return []provider{{
		name: "Vault", host: vaultHost, serve: serveVault,
		uri: func(key string) string { return "hashivault://" + key },
	}, {
		name: "AWS", host: awsHost,
		serve: func(t testing.TB, s *safe) { serveAWS(t, awsHost, s) },
		uri:   func(key string) string { return "awskms:///alias/" + key },
	}, {
		name: "AWS at an endpoint of its own", host: awsOwnHost, any: true,
		serve: func(t testing.TB, s *safe) { serveAWS(t, awsOwnHost, s) },
		uri:   func(key string) string { return "awskms://kms.example/alias/" + key },
	}, {
		name: "Azure", host: azureHost,
		serve:   func(t testing.TB, s *safe) { serveAzure(t, azureHost, s) },
		uri:     func(key string) string { return "azurekms://quay.vault.azure.net/" + key },
		version: func(key string, n int) string { return fmt.Sprintf("azurekms://quay.vault.azure.net/%s/%d", key, n) },
	}, {
		name: "Azure at a host of its own", host: azureOwnHost, any: true,
		serve: func(t testing.TB, s *safe) { serveAzure(t, azureOwnHost, s) },
		uri:   func(key string) string { return "azurekms://vault.example.org/" + key },
	}, {
		name: "Google", host: gcpHost, serve: serveGCP,
		uri: func(key string) string { return "gcpkms://" + gcpRing + key },
		version: func(key string, n int) string {
			return fmt.Sprintf("gcpkms://%s%s/cryptoKeyVersions/%d", gcpRing, key, n)
		},
	}}
}

// each runs a test against every provider.
func each(t *testing.T, test func(*testing.T, provider, *port, *safe)) {
	for _, p := range providers() {
		t.Run(p.name, func(t *testing.T) {
			s := newSafe()
			s.add(t, "signing")
			p.serve(t, s)
			test(t, p, newPort(t, kms.Providers{AllowAnyEndpoint: p.any}), s)
		})
	}
}

// TestProof signs with the key in the service, and proves it by the key that
// the product looks up there.
func TestProof(t *testing.T) {
	each(t, func(t *testing.T, p provider, port *port, s *safe) {
		s.add(t, "other")
		legacy := port.Build("legacy", "v1", "legacy")
		port.signLegacy(t, legacy, p.uri("signing"))
		bundled := port.Build("bundle", "v1", "bundle")
		port.signBundle(t, bundled, p.uri("signing"))
		unsigned := port.Build("unsigned", "v1", "unsigned")

		port.expect(t, legacy, p.uri("signing"), gate.Allow, policy.Verified)
		port.expect(t, bundled, p.uri("signing"), gate.Allow, policy.Verified)
		port.expect(t, legacy, p.uri("other"), gate.Deny, wrongKey)
		port.expect(t, bundled, p.uri("other"), gate.Deny, wrongKey)
		port.expect(t, unsigned, p.uri("signing"), gate.Deny, policy.Unsigned)
	})
}

// TestUnavailable: a missing answer of a service is no evidence against a signature.
func TestUnavailable(t *testing.T) {
	each(t, func(t *testing.T, p provider, port *port, s *safe) {
		s.add(t, "closed")
		signed := port.Build("app", "v1", "app")
		port.signLegacy(t, signed, p.uri("signing"))
		s.deny("closed")
		for _, c := range []struct{ reason, key string }{
			{"the key does not exist", "unknown"},
			{"the caller may not read it", "closed"},
		} {
			t.Run(c.reason, func(t *testing.T) {
				wantUnavailable(t.Context(), t, port.snapshot, p.uri(c.key))
				reasons := port.expect(t, signed, p.uri(c.key), gate.Error, policy.CannotProve)
				keepSecrets(t, fmt.Sprintf("%+v", reasons))
			})
		}
		t.Run("the service is down", func(t *testing.T) {
			earth.cut(p.host)
			// Some providers retry for longer than a caller waits.
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			wantUnavailable(ctx, t, port.snapshot, p.uri("signing"))
			if !earth.asked(p.host) {
				t.Errorf("%s was never asked", p.host)
			}
		})
	})
}

// wantUnavailable fails the test unless the key cannot be looked up, and the error
// names it, and neither calls anything unsigned nor contains a secret.
func wantUnavailable(ctx context.Context, t *testing.T, snapshot *trust.Snapshot, uri string) {
	t.Helper()
	_, err := snapshot.Resolve(ctx, keyAt(uri))
	if err == nil {
		t.Fatal("the key was found")
	}
	var rejection *verify.Rejection
	if errors.As(err, &rejection) {
		t.Errorf("a failed look-up is taken for a disproof: %v", err)
	}
	if !strings.Contains(err.Error(), uri) {
		t.Errorf("the error does not name %s: %v", uri, err)
	}
	keepSecrets(t, err.Error())
}

func keepSecrets(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{vaultToken, awsSecret, azureSecret, azureToken, "Bearer ey", "Signature="} {
		if strings.Contains(text, secret) {
			t.Errorf("the message contains %q: %s", secret, text)
		}
	}
}

// TestRotation: a new version takes effect after the interval, and not sooner.
func TestRotation(t *testing.T) {
	each(t, func(t *testing.T, p provider, port *port, s *safe) {
		uri := p.uri("signing")
		before := port.Build("before", "v1", "before")
		port.signLegacy(t, before, uri)
		port.expect(t, before, uri, gate.Allow, policy.Verified)

		s.add(t, "signing")
		after := port.Build("after", "v1", "after")
		port.signLegacy(t, after, uri)
		port.expect(t, after, uri, gate.Deny, wrongKey) // the old key is remembered
		port.expect(t, before, uri, gate.Allow, policy.Verified)

		port.clock.pass(trust.DefaultKeyInterval)
		port.awaitKey(t, uri, s.keys["signing"][1].Public())
		port.expect(t, after, uri, gate.Allow, policy.Verified)
		port.expect(t, before, uri, gate.Deny, wrongKey)

		if p.version == nil {
			return
		}
		port.expect(t, before, p.version("signing", 1), gate.Allow, policy.Verified)
		port.expect(t, after, p.version("signing", 1), gate.Deny, wrongKey)
		port.expect(t, after, p.version("signing", 2), gate.Allow, policy.Verified)
		port.expect(t, after, p.version("signing", 3), gate.Error, policy.CannotProve)
	})
}

// awaitKey returns when the look-up beside the requests has brought the key.
func (p *port) awaitKey(t *testing.T, uri string, want any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	fresh, err := trust.NewPublicKey(want, "")
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		authority, err := p.snapshot.Resolve(ctx, keyAt(uri))
		if err != nil {
			t.Fatal(err)
		}
		if string(authority.Key.PEM) == string(fresh.PEM) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the rotated key does not arrive")
		}
	}
}

// TestWithdrawal: a key that may no longer be read is used for a while, which
// the status reports, and not for ever.
func TestWithdrawal(t *testing.T) {
	each(t, func(t *testing.T, p provider, port *port, s *safe) {
		uri := p.uri("signing")
		signed := port.Build("app", "v1", "app")
		port.signLegacy(t, signed, uri)
		port.expect(t, signed, uri, gate.Allow, policy.Verified)
		if stale := port.store.Status().Stale; len(stale) != 0 {
			t.Fatalf("a fresh key is called stale: %v", stale)
		}

		s.deny("signing")
		port.clock.pass(trust.DefaultKeyInterval)
		port.expect(t, signed, uri, gate.Allow, policy.Verified)
		stale := port.awaitStale(t)
		if !strings.Contains(stale.Error(), uri) {
			t.Errorf("the status does not name the key: %v", stale)
		}
		keepSecrets(t, stale.Error())

		port.clock.pass(24 * trust.DefaultKeyInterval)
		port.expect(t, signed, uri, gate.Error, policy.CannotProve)
	})
}

func (p *port) awaitStale(t *testing.T) error {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	for {
		if stale := p.store.Status().Stale; len(stale) > 0 {
			return stale[0]
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("the status never reports that the key could not be renewed")
		}
	}
}

// TestCredentials: the services refuse a caller with other credentials, so the
// proofs above show that ours are sent and right.
func TestCredentials(t *testing.T) {
	for _, c := range []struct{ reason, provider, variable, value string }{
		{"another token", "Vault", "VAULT_TOKEN", "hvs.of-somebody-else"},
		{"another secret signs the request", "AWS", "AWS_SECRET_ACCESS_KEY", "of-somebody-else"},
		{"another client secret", "Azure", "AZURE_CLIENT_SECRET", "of-somebody-else"},
	} {
		t.Run(c.provider+": "+c.reason, func(t *testing.T) {
			for _, p := range providers() {
				if p.name != c.provider {
					continue
				}
				s := newSafe()
				s.add(t, "signing")
				p.serve(t, s)
				port := newPort(t, kms.Providers{})
				t.Setenv(c.variable, c.value)
				wantUnavailable(t.Context(), t, port.snapshot, p.uri("signing"))
			}
		})
	}
}

// TestEndpoints: unless configured, a URI does not choose the host that gets our credentials.
func TestEndpoints(t *testing.T) {
	for _, c := range []struct{ reason, uri string }{
		{"another AWS endpoint", "awskms://kms.example/alias/signing"},
		{"a loopback AWS endpoint", "awskms://localhost:4566/alias/signing"},
		{"another host for Azure", "azurekms://vault.example.org/signing"},
		{"Azure's name in front", "azurekms://quay.vault.azure.net.example.org/signing"},
		{"Azure's name without a dot", "azurekms://quayvault.azure.net/signing"},
		{"Azure's name as a query", "azurekms://vault.example.org?.vault.azure.net/signing"},
		{"Azure's name as a fragment", "azurekms://vault.example.org#.vault.azure.net/signing"},
		{"Azure's name after an escaped slash", "azurekms://vault.example.org%2f.vault.azure.net/signing"},
		{"Azure's name after a backslash", `azurekms://vault.example.org\.vault.azure.net/signing`},
		{"Azure's name after a user", "azurekms://me@quay.vault.azure.net/signing"},
		{"a port of its own", "azurekms://quay.vault.azure.net:444/signing"},
		{"Azure's domain alone", "azurekms://.vault.azure.net/signing"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := newSafe()
			s.add(t, "signing")
			serveAzure(t, azureOwnHost, s)
			serveAWS(t, awsOwnHost, s)
			_, err := kms.Providers{}.PublicKey(t.Context(), c.uri)
			if err == nil || !strings.Contains(err.Error(), "allow") {
				t.Fatalf("want a refusal that names the way out, got %v", err)
			}
		})
	}
}

// TestKinds: other kinds of keys than the usual one.
func TestKinds(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := newSafe()
	s.put("edwards", edwards)
	s.put("p384", p384)
	serveVault(t, s)
	serveAWS(t, awsHost, s)
	p := newPort(t, kms.Providers{})
	for _, c := range []struct{ reason, uri string }{
		{"AWS signs SHA-384 digests with P-384", "awskms:///alias/p384"},
		{"Vault has P-384 sign SHA-256 digests for cosign", "hashivault://p384"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			image := p.Build("kinds", "v1", c.uri)
			p.signLegacy(t, image, c.uri)
			p.expect(t, image, c.uri, gate.Allow, policy.Verified)
			p.expect(t, image, "hashivault://edwards", gate.Deny, wrongKey)
		})
	}
	t.Run("Vault writes Ed25519 keys in base64", func(t *testing.T) {
		key, err := kms.Providers{}.PublicKey(t.Context(), "hashivault://edwards")
		if err != nil {
			t.Fatal(err)
		}
		got := base64.StdEncoding.EncodeToString(key.(ed25519.PublicKey))
		if want := base64.StdEncoding.EncodeToString(edwards.Public().(ed25519.PublicKey)); got != want {
			t.Errorf("got the key %s, want %s", got, want)
		}
	})
}

// TestMessages: whatever a service answers, the message is one bounded line
// without credentials.
func TestMessages(t *testing.T) {
	const header = "Authorization: Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl"
	for _, c := range []struct{ reason, answer string }{
		{"lines", "first\nsecond\r\n\tthird"},
		{"a flood", strings.Repeat("flood ", 100_000)},
		{"our credentials come back", header},
		{"an address with a password", "see https://me:hvs.secret-of-vault@vault.example/"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			earth.serve(t, vaultHost, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				vaultFail(w, http.StatusForbidden, c.answer)
			}))
			_, err := kms.Providers{}.PublicKey(t.Context(), "hashivault://signing")
			if err == nil {
				t.Fatal("a failing service gave a key")
			}
			if text := err.Error(); len(text) > 600 || strings.ContainsAny(text, "\r\n\t") {
				t.Errorf("the message has %d bytes or several lines: %.200q", len(text), text)
			}
			keepSecrets(t, err.Error())
		})
	}
}

// TestHostileAnswers: an invalid key is an error, never a panic.
func TestHostileAnswers(t *testing.T) {
	const vault, aws, azure = "hashivault://signing", "awskms:///alias/signing", "azurekms://quay.vault.azure.net/signing"
	hosts := map[string]string{vault: vaultHost, aws: awsHost, azure: azureHost}
	for _, c := range []struct{ reason, uri, answer string }{
		{"nothing", vault, ``},
		{"no JSON", vault, `<html>`},
		{"no keys", vault, `{"data":{}}`},
		{"keys of another shape", vault, `{"data":{"keys":[],"latest_version":1}}`},
		{"a version that is not there", vault, `{"data":{"keys":{"1":{}},"latest_version":2}}`},
		{"a version of another shape", vault, `{"data":{"keys":{"1":7},"latest_version":1}}`},
		{"a key that is no PEM", vault, `{"data":{"keys":{"1":{"name":"P-256","public_key":"x"}},"latest_version":1}}`},
		{"a short Ed25519 key", vault, `{"data":{"keys":{"1":{"name":"ed25519","public_key":"AAAA"}},"latest_version":1}}`},
		{"nothing", aws, ``},
		{"an empty object", aws, `{}`},
		{"a key that is no DER", aws, `{"PublicKey":"AAAA"}`},
		{"no key", azure, `{}`},
		{"a key without a type", azure, `{"key":{}}`},
		{"an elliptic key without a point", azure, `{"key":{"kty":"EC","crv":"P-256"}}`},
		{"a secret", azure, `{"key":{"kty":"oct","k":"AAAA"}}`},
		{"a short RSA key", azure, `{"key":{"kty":"RSA","n":"AQAB","e":"AQAB"}}`},
	} {
		t.Run(hosts[c.uri]+": "+c.reason, func(t *testing.T) {
			earth.serve(t, hosts[c.uri], http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, c.answer)
			}))
			wantUnavailable(t.Context(), t, newPort(t, kms.Providers{}).snapshot, c.uri)
		})
	}
}
