package registry

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/dial"
	"github.com/quaymaster/quaymaster/registry/internal/guard"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// Host configures access to one host; the zero value is the default. The entry of a host
// takes precedence: a policy's allowInsecureRegistry does not loosen it.
type Host struct {
	// RootCAs replaces Config.RootCAs for this host; nil keeps them.
	RootCAs *x509.CertPool
	// Certificates are presented to this host where it asks for one (mutual TLS), and to no
	// other host. The host gets them only in requests for its own images, and for those of a
	// registry that Config.Realms lists it for.
	Certificates []tls.Certificate
	// PlainHTTP asks the host without TLS, as Config.PlainHTTP does.
	PlainHTTP bool
}

// transports are the transports to all hosts. Each host with settings has connections of its
// own, and two sets where it has a client certificate.
type transports struct {
	open *http.Transport // all other hosts
	// known presents no client certificate, own does. Keys are as in address.
	known, own map[string]*http.Transport
}

// roundTripper is the innermost transport of one call: it selects the connections, and counts requests.
type roundTripper struct {
	requester *requester
	origin    *url.URL // the registry that the call is for
	permit    *ratelimit.Permit
	trail     *trail // may be nil
}

// RoundTrip implements http.RoundTripper.
func (s roundTripper) RoundTrip(q *http.Request) (*http.Response, error) {
	r := s.requester
	r.meter.count()
	started := time.Now()
	answer, err := r.transports.to(s.origin, q.URL, r.realms).RoundTrip(q)
	status := 0
	s.trail.note(s.origin, q, answer)
	if err == nil {
		status = answer.StatusCode
		isHome := guard.SameOrigin(s.origin, q.URL)
		// A token service's 429 limits the registry, too. A redirect's target may concern one
		// repository only.
		if isHome || status == http.StatusTooManyRequests && q.Response == nil {
			s.permit.Heard(status, answer.Header)
		}
		if isHome {
			r.meter.answered(q, answer.Header, status)
		}
	}
	if r.seen != nil {
		r.seen(q.URL.Host, status, time.Since(started))
	}
	return answer, err
}

// newTransport returns the transport for hosts with the roots of trust.
func newTransport(dialer *dial.Dialer, trust *tls.Config) *http.Transport {
	trust.MinVersion = tls.VersionTLS12
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        trust,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true, // our own settings would disable it
		MaxIdleConnsPerHost:    hostConcurrency,
		MaxIdleConns:           totalConcurrency,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // a body is hashed as it is sent
	}
}

func newTransports(config Config, dialer *dial.Dialer) transports {
	r := transports{
		open:  newTransport(dialer, &tls.Config{RootCAs: config.RootCAs}), //nolint:gosec // newTransport sets the version
		known: map[string]*http.Transport{}, own: map[string]*http.Transport{},
	}
	for name, host := range config.Hosts {
		roots := host.RootCAs
		if roots == nil {
			roots = config.RootCAs
		}
		key := askedHost(name)
		r.known[key] = newTransport(dialer, &tls.Config{RootCAs: roots}) //nolint:gosec // as above
		if len(host.Certificates) > 0 {
			trust := &tls.Config{RootCAs: roots, Certificates: slices.Clone(host.Certificates)} //nolint:gosec // as above
			r.own[key] = newTransport(dialer, trust)
		}
	}
	return r
}

// all are the transports, each once.
func (r transports) all() []*http.Transport {
	list := []*http.Transport{r.open}
	list = slices.AppendSeq(list, maps.Values(r.known))
	return slices.AppendSeq(list, maps.Values(r.own))
}

// to returns the transport of a request to target that is made for the registry at home.
// An untrusted host may lead here (by a redirect, as a realm): then no client certificate
// is presented, since it would lend that host this client's rights.
func (r transports) to(home, target *url.URL, realms guard.Realms) *http.Transport {
	if len(r.known) == 0 {
		return r.open
	}
	key := address(target)
	if own, ok := r.own[key]; ok && (guard.SameOrigin(home, target) || realms.Lists(home, target)) {
		return own
	}
	if known, ok := r.known[key]; ok {
		return known
	}
	return r.open
}

// insecure are the transports that accept any certificate. Hosts with settings keep them,
// and their connections.
func (r transports) insecure() transports {
	open := r.open.Clone()
	open.TLSClientConfig.InsecureSkipVerify = true
	return transports{open: open, known: r.known, own: r.own}
}

// describes reports whether the host has a configuration entry.
func (r transports) describes(target *url.URL) bool {
	_, ok := r.known[address(target)]
	return ok
}

// address is a URL's host as image references write it: without the port that
// its scheme implies.
func address(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "https":
		return strings.TrimSuffix(host, ":443")
	case "http":
		return strings.TrimSuffix(host, ":80")
	}
	return host
}

// askedHost is the host that is asked for a registry's images.
func askedHost(registry string) string {
	registry = image.NormalRegistry(registry)
	if registry == dockerHub {
		return dockerHubHost
	}
	return registry
}

// plainHosts lists the hosts without TLS.
func (c Config) plainHosts() []string {
	hosts := slices.Clone(c.PlainHTTP)
	for name, host := range c.Hosts {
		if host.PlainHTTP {
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// checkHosts refuses settings that contradict each other.
func (c Config) checkHosts() error {
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Hosts)) {
		host, key := c.Hosts[name], askedHost(name)
		if other, twice := seen[key]; twice {
			return fmt.Errorf("registry client: hosts %s and %s are the same; write one of them", other, name)
		}
		seen[key] = name
		if host.PlainHTTP && (host.RootCAs != nil || len(host.Certificates) > 0) {
			return fmt.Errorf("registry client: host %s is asked over plain HTTP, where certificates mean nothing; remove one or the other", name)
		}
		for i, certificate := range host.Certificates {
			if len(certificate.Certificate) == 0 || certificate.PrivateKey == nil {
				return fmt.Errorf("registry client: host %s: client certificate %d: want a certificate and its private key", name, i)
			}
		}
	}
	return nil
}
