package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/internal/memory"
)

// TestLacksReferrers: which answers mean that there is no API, and which are cached.
func TestLacksReferrers(t *testing.T) {
	for _, test := range []struct {
		status            int
		code              string
		lacks, remembered bool
	}{
		{http.StatusNotFound, "", true, true},
		{http.StatusNotFound, errcode.ErrorCodeUnsupported, true, true},
		{http.StatusNotFound, errcode.ErrorCodeManifestUnknown, true, false}, // of a digest that there is not
		{http.StatusNotFound, errcode.ErrorCodeNameUnknown, true, false},     // of a repository that there is not
		{http.StatusMethodNotAllowed, "", true, true},
		{http.StatusNotAcceptable, "", true, true},
		{http.StatusNotImplemented, "", true, true},
		{http.StatusBadRequest, "", true, false},
		{http.StatusBadRequest, errcode.ErrorCodeUnsupported, true, false},
		{http.StatusBadRequest, errcode.ErrorCodeDigestInvalid, false, false}, // of the question
		{http.StatusForbidden, "", false, false},
		{http.StatusInternalServerError, errcode.ErrorCodeUnsupported, false, false},
	} {
		client, q := &Client{apis: newAPIs()}, request{repository: image.MustParse("reg.example/app").Repository(), reference: "sha256:0"}
		failure := &Error{Status: test.status}
		if test.code != "" {
			failure.Err = errcode.Errors{{Code: test.code}}
		}
		lacks := client.apis.isMissing(q, failure)
		if remembered := client.apis.of(q) == apiMissing; lacks != test.lacks || remembered != test.remembered {
			t.Errorf("%d %s: lacks it %t, remembered %t", test.status, test.code, lacks, remembered)
		}
		q.reference = "sha512:0"
		if client.apis.of(q) != apiUnknown {
			t.Errorf("%d %s: it is remembered for another algorithm", test.status, test.code)
		}
	}
}

func TestKeychainsKnowDockerHubByItsOldName(t *testing.T) {
	tests := map[string]string{
		"nginx":              "index.docker.io/library/nginx",
		"docker.io/team/app": "index.docker.io/team/app",
		"reg.example/app":    "reg.example/app",
	}
	for written, want := range tests {
		repository, err := image.ParseRepository(written)
		if err != nil {
			t.Fatal(err)
		}
		if got := resource(repository).String(); got != want {
			t.Errorf("%s is %s, want %s", written, got, want)
		}
	}
}

func TestOrigin(t *testing.T) {
	s := schemes{plain: hostSet([]string{"plain.example", "plain.example:5000"}), tls: hostSet([]string{"localhost:5443"}), found: memory.New[bool](1, time.Hour)}
	tests := []struct{ repository, want string }{
		{"docker.io/library/nginx", "https://registry-1.docker.io"},
		{"nginx", "https://registry-1.docker.io"},
		{"reg.example/app", "https://reg.example"},
		{"plain.example/app", "http://plain.example"},
		{"plain.example:5000/app", "http://plain.example:5000"},
		{"plain.example:5001/app", "https://plain.example:5001"},
		{"localhost:5000/app", "http://localhost:5000"},
		{"127.0.0.1:5000/app", "http://127.0.0.1:5000"},
		{"localhost:5443/app", "https://localhost:5443"},
		{"10.0.0.1:5000/app", "https://10.0.0.1:5000"},
		{"[::1]:5000/app", "http://[::1]:5000"},
		{"[::1]/app", "http://[::1]"},
		{"[2001:db8::1]/app", "https://[2001:db8::1]"},
	}
	for _, test := range tests {
		repository, err := image.ParseRepository(test.repository)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.origin(repository).String(); got != test.want {
			t.Errorf("%s: %s, want %s", test.repository, got, test.want)
		}
	}
}

// TestLearn: only a TLS server's answer to plain HTTP, which was not configured, switches a
// host to TLS.
func TestLearn(t *testing.T) {
	for _, test := range []struct {
		reason, origin string
		status         int
		minor          int // of the protocol, HTTP/1
		header         http.Header
		learnt         bool
	}{
		{"a bare 400 of HTTP/1.0", "http://localhost:5000", 400, 0, http.Header{}, true},
		{"another status", "http://localhost:5000", 404, 0, http.Header{}, false},
		{"of HTTP/1.1", "http://localhost:5000", 400, 1, http.Header{}, false},
		{"with headers", "http://localhost:5000", 400, 0, http.Header{"Server": {"x"}}, false},
		{"of a host that was asked over TLS", "https://localhost:5000", 400, 0, http.Header{}, false},
		{"of a host that the user wants to be asked so", "http://plain.example", 400, 0, http.Header{}, false},
	} {
		s := schemes{plain: hostSet([]string{"plain.example"}), found: memory.New[bool](1, time.Hour)}
		origin, err := url.Parse(test.origin)
		if err != nil {
			t.Fatal(err)
		}
		response := &http.Response{StatusCode: test.status, ProtoMajor: 1, ProtoMinor: test.minor, Header: test.header}
		if learnt := s.learn(origin, response); learnt != test.learnt || s.foundTLS(origin.Host) != test.learnt {
			t.Errorf("%s: learnt %t, and remembered %t", test.reason, learnt, s.foundTLS(origin.Host))
		}
	}
}

// TestConcede: TLS is given up only if that is configured, and for a host without it.
func TestConcede(t *testing.T) {
	origin := &url.URL{Scheme: "https", Host: "reg.example"}
	for _, test := range []struct {
		reason   string
		bare     *memory.Map[bool]
		err      error
		conceded bool
	}{
		{"a host without TLS", memory.New[bool](1, time.Hour), fmt.Errorf("ask: %w", http.ErrSchemeMismatch), true},
		{"a host that does not answer", memory.New[bool](1, time.Hour), errors.New("no answer"), false},
		{"it is not configured", nil, http.ErrSchemeMismatch, false},
	} {
		s := schemes{bare: test.bare}
		if conceded := s.concede(origin, test.err); conceded != test.conceded || s.isBare(origin.Host) != test.conceded {
			t.Errorf("%s: conceded %t, and remembered %t", test.reason, conceded, s.isBare(origin.Host))
		}
	}
}

// TestHostNames: a host's settings are found by how it is asked.
func TestHostNames(t *testing.T) {
	for name, want := range map[string]string{"docker.io": "registry-1.docker.io", "Reg.Example": "reg.example", "reg.example:5000": "reg.example:5000"} {
		if got := askedHost(name); got != want {
			t.Errorf("%s is asked as %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"https://Reg.Example:443": "reg.example", "https://reg.example:80": "reg.example:80", "http://reg.example:80": "reg.example",
		"http://reg.example:443": "reg.example:443", "ftp://reg.example:80": "reg.example:80",
	} {
		u, err := url.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := address(u); got != want {
			t.Errorf("%s is at %s, want %s", name, got, want)
		}
	}
}
