package registry

import (
	"net"
	"net/url"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/dial"
)

// dockerHub is asked under another name than it is written.
const (
	dockerHub     = "docker.io"
	dockerHubHost = "registry-1.docker.io"
)

// schemes says which hosts are asked without TLS.
type schemes struct {
	plain map[string]bool // given by the user
	tls   map[string]bool // loopback hosts that do speak TLS
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
	case s.plain[host]:
		scheme = "http"
	case s.tls[host]:
	case dial.IsLoopbackHost(hostname(host)):
		scheme = "http"
	}
	return &url.URL{Scheme: scheme, Host: host}
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
