package registry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// TestCredentialsAreTriedInOrder: what one credential may not see, the next one
// may, and it is remembered which did.
func TestCredentialsAreTriedInOrder(t *testing.T) {
	wrong := authn.AuthConfig{Username: "user", Password: "hunter3-hunter3"}
	for _, scheme := range []registrytest.Scheme{registrytest.Basic, registrytest.Token} {
		for _, test := range []struct {
			reason  string
			sources []authn.AuthConfig
			refused []string // the names in the message; nil means that it is resolved
		}{
			{"the first does", []authn.AuthConfig{user, wrong}, nil},
			{"the second does", []authn.AuthConfig{wrong, user}, nil},
			{"a source without credential is passed over", []authn.AuthConfig{wrong, {}, user}, nil},
			{"none does", []authn.AuthConfig{wrong, {}, wrong}, []string{"place 0", "place 2"}},
			{"there is none", []authn.AuthConfig{{}, {}}, []string{"anonymously"}},
		} {
			t.Run(string(scheme)+", "+test.reason, func(t *testing.T) {
				server := start(t, registrytest.Options{Auth: registrytest.Auth{Scheme: scheme, Username: "user", Password: password}})
				server.PutImage("app", "v1", "content")
				var config registry.Config
				for i, auth := range test.sources {
					config.Credentials = append(config.Credentials, registry.Source{
						Name: "place " + string(rune('0'+i)), Keychain: static{prefix: server.Host(), config: auth},
					})
				}
				client := newClient(t, config)
				ref := image.MustParse(server.Host() + "/app:v1")
				_, err := client.Resolve(t.Context(), ref)
				if test.refused != nil {
					wantKind(t, err, image.Refused)
					for _, says := range test.refused {
						if !strings.Contains(err.Error(), says) {
							t.Errorf("%v: want it to say %q", err, says)
						}
					}
					if strings.Contains(err.Error(), "place 1") {
						t.Errorf("it names a place that had nothing: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				server.Reset()
				if _, err := client.Resolve(t.Context(), ref); err != nil || server.Count("") != 1 {
					t.Errorf("again: %d requests, want 1, %v", server.Count(""), err)
				}
			})
		}
	}
}

// TestARememberedCredentialIsNotTheOnlyOne: the one that did is revoked, and the
// other one does by now.
func TestARememberedCredentialIsNotTheOnlyOne(t *testing.T) {
	server := start(t, registrytest.Options{})
	server.PutImage("app", "v1", "content")
	first, second := &changing{auth: authn.AuthConfig{RegistryToken: "first"}}, &changing{auth: authn.AuthConfig{RegistryToken: "second"}}
	client := newClient(t, registry.Config{Credentials: []registry.Source{{Name: "first", Keychain: first}, {Name: "second", Keychain: second}}})
	ref := image.MustParse(server.Host() + "/app:v1")
	for _, good := range []string{"second", "first", "second"} {
		server.SetFaults(registrytest.Fault{Do: registrytest.OnlyBearer(good)})
		if _, err := client.Resolve(t.Context(), ref); err != nil {
			t.Fatalf("with the token %s: %v", good, err)
		}
	}
	server.SetFaults(registrytest.Fault{Do: registrytest.OnlyBearer("third")})
	_, err := client.Resolve(t.Context(), ref)
	wantKind(t, err, image.Refused)
}

// TestEachCredentialIsSentOnce: a refused credential is not sent again, an empty one is not
// sent at all, and without a refusal no other one is tried.
func TestEachCredentialIsSentOnce(t *testing.T) {
	known := func(username string) authn.Keychain {
		return static{config: authn.AuthConfig{Username: username, Password: password}}
	}
	none := static{}
	for _, test := range []struct {
		reason  string
		sources []authn.Keychain
		fault   registrytest.Action // in place of the registry's answer
		kind    image.Kind
		sent    int // with a credential
		asked   int // in all: each begins with a challenge
	}{
		{"the first is refused, and the last one", []authn.Keychain{known("a"), none, known("b")}, nil, image.Refused, 2, 4},
		{"all are refused", []authn.Keychain{known("a"), known("b"), known("c")}, nil, image.Refused, 3, 6},
		{"the second does", []authn.Keychain{known("a"), known("user"), known("c")}, nil, "", 2, 4},
		{"the second cannot be had, and the third does", []authn.Keychain{known("a"), brokenKeychain{}, known("user")}, nil, "", 2, 4},
		{"the only one is refused", []authn.Keychain{known("a")}, nil, image.Refused, 1, 2},
		{"it is not there for the first, and the second is refused", []authn.Keychain{known("user"), known("b")}, registrytest.Status(http.StatusNotFound), image.NotFound, 2, 4},
		{"it is not there for the only one", []authn.Keychain{known("user")}, registrytest.Status(http.StatusNotFound), image.NotFound, 1, 2},
	} {
		server := start(t, registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Basic, Username: "user", Password: password}})
		server.PutImage("app", "v1", "content")
		if test.fault != nil {
			server.SetFaults(registrytest.Fault{Do: test.fault})
		}
		var config registry.Config
		for i, keychain := range test.sources {
			config.Credentials = append(config.Credentials, registry.Source{Name: fmt.Sprint("source ", i), Keychain: keychain})
		}
		_, _, err := newClient(t, config).Manifest(t.Context(), repository(t, server.Host()+"/app"), "v1")
		if image.KindOf(err) != test.kind {
			t.Errorf("%s: %q, want %q: %v", test.reason, image.KindOf(err), test.kind, err)
		}
		sent := 0
		for _, q := range server.Requests() {
			if q.Header.Get("Authorization") != "" {
				sent++
			}
		}
		if asked := server.Count(""); sent != test.sent || asked != test.asked {
			t.Errorf("%s: %d requests, %d with a credential; want %d and %d", test.reason, asked, sent, test.asked, test.sent)
		}
	}
}

// TestATokenIsOfItsCredential: a token service gives a token to each, and the registry
// refuses what comes with the first two.
func TestATokenIsOfItsCredential(t *testing.T) {
	for last, kind := range map[string]image.Kind{"third": "", "fourth": image.Refused} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if who, _, _ := q.BasicAuth(); q.URL.Path == "/token" {
				_, _ = fmt.Fprintf(w, `{"token":%q}`, who)
				return
			}
			switch token := q.Header.Get("Authorization"); token {
			case "Bearer " + last:
				w.Header().Set("Content-Type", image.MediaTypeManifest)
				_, _ = w.Write([]byte(`{"mediaType":"` + image.MediaTypeManifest + `"}`))
			case "":
				w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+q.Host+`/token",service="registry"`)
				w.WriteHeader(http.StatusUnauthorized)
			default:
				w.WriteHeader(http.StatusForbidden)
			}
		}))
		defer server.Close()
		host := strings.TrimPrefix(server.URL, "http://")
		var config registry.Config
		for _, name := range []string{"first", "second", "third"} {
			auth := authn.AuthConfig{Username: name, Password: password}
			config.Credentials = append(config.Credentials, registry.Source{Name: name, Keychain: static{prefix: host, config: auth}})
		}
		_, _, err := newClient(t, config).Manifest(t.Context(), repository(t, host+"/app"), "v1")
		if image.KindOf(err) != kind {
			t.Errorf("where the %s may: %q, want %q: %v", last, image.KindOf(err), kind, err)
		}
	}
}

// TestATokenServiceThatRefuses leads to the next credential, whichever the failure: it may be
// due to this credential.
func TestATokenServiceThatRefuses(t *testing.T) {
	for status, kind := range map[int]image.Kind{
		http.StatusBadRequest: "", http.StatusUnauthorized: "", http.StatusForbidden: "",
		http.StatusNotFound: "", http.StatusMethodNotAllowed: "", http.StatusInternalServerError: "",
	} {
		second := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			switch who, _, _ := q.BasicAuth(); {
			case q.URL.Path == "/token" && who == "first":
				w.WriteHeader(status)
			case q.URL.Path == "/token":
				second++
				_, _ = fmt.Fprint(w, `{"token":"good"}`)
			case q.Header.Get("Authorization") == "Bearer good":
				w.Header().Set("Content-Type", image.MediaTypeManifest)
				_, _ = w.Write([]byte(`{"mediaType":"` + image.MediaTypeManifest + `"}`))
			default:
				w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+q.Host+`/token",service="registry"`)
				w.WriteHeader(http.StatusUnauthorized)
			}
		}))
		defer server.Close()
		host := strings.TrimPrefix(server.URL, "http://")
		var config registry.Config
		for _, name := range []string{"first", "second"} {
			auth := authn.AuthConfig{Username: name, Password: password}
			config.Credentials = append(config.Credentials, registry.Source{Name: name, Keychain: static{prefix: host, config: auth}})
		}
		_, _, err := newClient(t, config).Manifest(t.Context(), repository(t, host+"/app"), "v1")
		if image.KindOf(err) != kind || (second > 0) != (kind == "") {
			t.Errorf("status %d: %v, and %d requests with the second; want %q", status, err, second, kind)
		}
	}
}

type changing struct{ auth authn.AuthConfig }

func (c *changing) Resolve(authn.Resource) (authn.Authenticator, error) {
	return authn.FromConfig(c.auth), nil
}
