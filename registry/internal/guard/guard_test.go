package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"
)

func TestRealms(t *testing.T) {
	tests := []struct {
		reason, home, realm string
		refused             bool
	}{
		{"the registry itself", "https://reg.example.com", "https://reg.example.com/token", false},
		{"its default port written out", "https://reg.example.com", "https://REG.example.com:443/token", false},
		{"another port", "https://reg.example.com", "https://reg.example.com:8443/token", false},
		{"a sibling", "https://reg.example.com", "https://auth.example.com/token", false},
		{"Docker Hub", "https://registry-1.docker.io", "https://auth.docker.io/token", false},
		{"GitLab", "https://registry.gitlab.com", "https://gitlab.com/jwt/auth", false},
		{"listed", "https://listed.example.com", "https://auth.example.org/token", false},
		{"loopback for loopback", "http://127.0.0.1:5000", "http://localhost:5001/token", false},
		{"one name of loopback for another", "http://localhost:5000", "http://[::1]:5001/token", false},
		{"another address of loopback", "http://127.0.0.1:5000", "http://127.0.0.2:5001/token", true},
		{"plain HTTP on the registry's own host", "http://reg.corp:5000", "http://reg.corp:5001/auth", false},
		{"TLS on the host of a plain registry", "http://reg.corp:5000", "https://reg.corp/auth", false},
		{"another domain", "https://reg.example.com", "https://auth.example.org/token", true},
		{"a domain that only ends alike", "https://reg.example.com", "https://evilexample.com/token", true},
		{"the domain as a prefix", "https://reg.example.com", "https://reg.example.com.evil.org/token", true},
		{"listed for another registry", "https://reg.example.com", "https://listed.example.com.evil.org", true},
		{"listed, but not for its port", "https://listed.example.com:444", "https://auth.example.org/token", true},
		{"listed, without TLS", "https://listed.example.com", "http://auth.example.org/token", true},
		{"out of TLS", "https://reg.example.com", "http://reg.example.com/token", true},
		{"plain HTTP on another host", "http://reg.corp:5000", "http://auth.corp/token", true},
		{"loopback for a remote host", "https://reg.example.com", "https://127.0.0.1/token", true},
		{"a remote host for loopback", "http://127.0.0.1:5000", "https://auth.example.org/token", true},
		{"one name under a company's public suffix", "https://reg.one.github.io", "https://auth.one.github.io/token", false},
		{"two names under a public suffix", "https://one.github.io", "https://two.github.io/token", true},
		{"two names under a country", "https://a.co.uk", "https://b.co.uk/token", true},
		{"two services of a cluster", "https://reg.a.svc.cluster.local", "https://reg.b.svc.cluster.local/token", true},
		{"two addresses", "https://10.0.0.1", "https://10.0.0.2/token", true},
		{"two bare names", "https://registry", "https://fisher/token", true},
	}
	realms := Realms{"listed.example.com": {"auth.example.org"}}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			err := realms.check(parse(t, test.home), parse(t, test.realm))
			if _, ok := errors.AsType[*RealmError](err); ok != test.refused || (err != nil) != test.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

func parse(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestRedirect(t *testing.T) {
	tests := []struct {
		reason, from, to string
		method           string
		hops             int
		refused, kept    bool
	}{
		{reason: "to itself", from: "https://a.example/x", to: "https://a.example/y", kept: true},
		{reason: "to another host", from: "https://a.example/x", to: "https://b.example/y"},
		{reason: "to another port", from: "https://a.example/x", to: "https://a.example:444/y"},
		{reason: "into TLS", from: "http://a.example/x", to: "https://a.example/y"},
		{reason: "into TLS at the same port", from: "http://a.example:5000/x", to: "https://a.example:5000/y"},
		{reason: "to its default port written out", from: "http://a.example/x", to: "http://a.example:80/y", kept: true},
		{reason: "of a question whether it is there", from: "https://a.example/x", to: "https://a.example/y", method: http.MethodHead, kept: true},
		{reason: "out of TLS", from: "https://a.example/x", to: "http://a.example/y", refused: true},
		{reason: "to a file", from: "http://a.example/x", to: "file:///etc/passwd", refused: true},
		{reason: "of a token request", from: "https://a.example/x", to: "https://a.example/y", method: http.MethodPost, refused: true},
		{reason: "as often as is allowed", from: "https://a.example/x", to: "https://a.example/y", hops: MaxRedirects, kept: true},
		{reason: "once too often", from: "https://a.example/x", to: "https://a.example/y", hops: MaxRedirects + 1, refused: true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			method := test.method
			if method == "" {
				method = http.MethodGet
			}
			var via []*http.Request
			for range max(test.hops, 1) {
				via = append(via, httptest.NewRequest(method, test.from, nil))
			}
			next := httptest.NewRequest(http.MethodGet, test.to, nil)
			next.Body = nil
			next.Header.Set("Authorization", "Basic c2VjcmV0")
			err := Redirect(next, via)
			if (err != nil) != test.refused {
				t.Fatalf("got %v", err)
			}
			if kept := next.Header.Get("Authorization") != ""; err == nil && kept != test.kept {
				t.Errorf("the credential was kept: %v", kept)
			}
		})
	}
}

func TestRemoteHostsDoNotReachLoopback(t *testing.T) {
	base := roundTripper(func(*http.Request) (*http.Response, error) { return httptest.NewRecorder().Result(), nil })
	tests := []struct {
		reason, home, target string
		refused              bool
	}{
		{"a public registry to localhost", "https://reg.example.com", "https://localhost/x", true},
		{"a public registry to a loopback address", "https://reg.example.com", "https://127.0.0.2:9/x", true},
		{"a public registry to a listed name", "https://reg.example.com", "https://listed.example/x", false},
		{"a public registry to this machine, which is listed", "https://reg.example.com", "https://[::1]/x", false},
		{"a public registry to a store", "https://reg.example.com", "https://store.example.org/x", false},
		{"a loopback registry to another port", "http://localhost:5000", "http://127.0.0.1:5001/x", false},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			transport := &Transport{Base: base, Origin: parse(t, test.home), Loopback: []string{"listed.example", "::1"}}
			answer, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, test.target, http.NoBody))
			if err == nil {
				_ = answer.Body.Close()
			}
			if _, ok := errors.AsType[*StrayError](err); ok != test.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestBodiesStay: a request body may be a credential, too.
func TestBodiesStay(t *testing.T) {
	base := roundTripper(func(*http.Request) (*http.Response, error) { return httptest.NewRecorder().Result(), nil })
	transport := &Transport{Base: base, Origin: parse(t, "https://reg.example.com")}
	for _, test := range []struct {
		reason, target string
		body           io.Reader
		refused        bool
	}{
		{"a body for a token service of the registry's", "https://auth.example.com/token", strings.NewReader("password=x"), false},
		{"a body for another host", "https://auth.example.org/token", strings.NewReader("password=x"), true},
		{"no body for another host", "https://auth.example.org/token", nil, false},
		{"an empty body for another host", "https://auth.example.org/token", http.NoBody, false},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, test.target, test.body)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(request)
		if err == nil {
			_ = answer.Body.Close()
		}
		if _, ok := errors.AsType[*RealmError](err); ok != test.refused {
			t.Errorf("%s: got %v", test.reason, err)
		}
	}
	first := httptest.NewRequest(http.MethodGet, "https://a.example/x", nil)
	next := httptest.NewRequest(http.MethodGet, "https://a.example/y", strings.NewReader("password=x"))
	if err := Redirect(next, []*http.Request{first}); err == nil {
		t.Error("a request with a body was sent on")
	}
}

func TestLists(t *testing.T) {
	realms, home := Realms{"listed.example.com": {"auth.example.org"}}, parse(t, "https://listed.example.com")
	for target, want := range map[string]bool{
		"https://AUTH.example.org/token": true, "http://auth.example.org/token": false, "https://auth.example.net/token": false,
	} {
		if realms.Lists(home, parse(t, target)) != want {
			t.Errorf("%s is listed: %t", target, !want)
		}
	}
}

func Example() {
	home, _ := url.Parse("https://registry.example.com")
	realm, _ := url.Parse("https://login.example.org/token")
	fmt.Println(Realms{}.check(home, realm))
	// Output: the credential for registry.example.com is not sent to its token service login.example.org: it is of another domain
}

// FuzzChallenge has a registry answer with any challenge. In every case, the
// credential is sent only within the registry's domain.
func FuzzChallenge(f *testing.F) {
	f.Add(`Basic realm="x"`)
	f.Add(`Bearer realm="http://127.0.0.1:1/token",service="x",scope="repository:app:pull"`)
	f.Add(`Bearer realm="https://evil.example/token"`)
	f.Add(`Bearer realm="` + strings.Repeat(`\"`, 50))
	home, _ := url.Parse("https://reg.example.com")
	f.Fuzz(func(t *testing.T, challenge string) {
		var sent []*http.Request
		base := roundTripper(func(q *http.Request) (*http.Response, error) {
			sent = append(sent, q)
			recorder := httptest.NewRecorder()
			recorder.Header()["Www-Authenticate"] = []string{challenge}
			recorder.WriteHeader(http.StatusUnauthorized)
			answer := recorder.Result()
			answer.Request = q
			return answer, nil
		})
		client := &auth.Client{
			Client: &http.Client{Transport: &Transport{Base: base, Origin: home}, CheckRedirect: Redirect},
			Cache:  auth.NewCache(),
			Credential: func(context.Context, string) (auth.Credential, error) {
				return auth.Credential{Username: "user", Password: "secret"}, nil
			},
		}
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, home.String()+"/v2/app/manifests/v1", nil)
		if answer, err := client.Do(q); err == nil {
			_ = answer.Body.Close()
		}
		for _, request := range sent {
			if request.Header.Get("Authorization") != "" && registrable(request.URL.Hostname()) != "example.com" {
				t.Errorf("%q sent the credential to %s", challenge, request.URL)
			}
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return r(q) }
