package registry

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/dial"
	"github.com/quaymaster/quaymaster/registry/internal/memory"
)

// dockerHub is asked under another name than it is written.
const (
	dockerHub     = "docker.io"
	dockerHubHost = "registry-1.docker.io"
)

// schemes selects the hosts that are asked without TLS.
type schemes struct {
	plain map[string]bool   // given by the user
	tls   map[string]bool   // loopback hosts that use TLS, configured by the user
	found *memory.Map[bool] // loopback hosts that turned out to
	// bare are hosts found not to use TLS; nil where TLS is not negotiable.
	bare *memory.Map[bool]
}

// origin returns where the registry of a repository is asked: HTTPS, but for
// hosts that the user named and for loopback ones, as docker has it.
func (s schemes) origin(repository image.Repository) *url.URL {
	host := repository.Registry()
	if host == dockerHub {
		host = dockerHubHost
	}
	scheme := "https"
	switch {
	case s.plain[host], s.isBare(host):
		scheme = "http"
	case s.tls[host] || s.foundTLS(host):
	case dial.IsLoopbackHost(hostname(host)):
		scheme = "http"
	}
	return &url.URL{Scheme: scheme, Host: host}
}

func (s schemes) foundTLS(host string) bool {
	speaks, _ := s.found.Get(host)
	return speaks
}

// learn looks at an answer of a loopback host that was asked over plain HTTP
// because it is one. Servers written in Go answer the first bytes of a request
// that should have been TLS with a bare 400 of HTTP/1.0. Such a host is asked
// over TLS from now on, never the other way.
func (s schemes) learn(origin *url.URL, response *http.Response) (learnt bool) {
	bare := response.StatusCode == http.StatusBadRequest && !response.ProtoAtLeast(1, 1) && len(response.Header) == 0
	if origin.Scheme != "http" || s.plain[origin.Host] || !bare {
		return false
	}
	s.found.Set(origin.Host, true)
	return true
}

func (s schemes) isBare(host string) bool {
	if s.bare == nil {
		return false
	}
	bare, _ := s.bare.Get(host)
	return bare
}

// concede reports whether a host that answered TLS with plain HTTP may be asked
// so from now on: only where the caller gave TLS up.
func (s schemes) concede(origin *url.URL, err error) bool {
	if s.bare == nil || !errors.Is(err, http.ErrSchemeMismatch) {
		return false
	}
	s.bare.Set(origin.Host, true)
	return true
}

// hostname cuts the port off.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

func hostSet(hosts []string) map[string]bool {
	set := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		set[image.NormalRegistry(host)] = true
	}
	return set
}
