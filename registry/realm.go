package registry

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/quaymaster/quaymaster/internal/dial"
)

// knownRealms are token services on another host than their registry. They
// need no entry where both share a registrable domain; these are kept so that
// a change of the public suffix list does not break them.
var knownRealms = map[string][]string{
	dockerHubHost:         {"auth.docker.io"},
	"registry.gitlab.com": {"gitlab.com"},
}

// realms decides which token service may see a registry's credential.
type realms struct {
	extra map[string][]string // registry host: realm hosts, by the user
}

// check returns nil when the credential for the registry at home may be sent
// to realm.
func (r realms) check(home, realm *url.URL) error {
	host := strings.ToLower(realm.Hostname())
	switch {
	case sameOrigin(home, realm):
		return nil
	case dial.IsLoopbackHost(home.Hostname()) && dial.IsLoopbackHost(host):
		return nil
	case realm.Scheme != "https" && (home.Scheme != "http" || host != strings.ToLower(home.Hostname())):
		return &realmError{home: home.Host, realm: realm.Host, reason: "it is not asked over TLS"}
	case host == strings.ToLower(home.Hostname()),
		slices.Contains(knownRealms[home.Host], host),
		slices.Contains(r.extra[home.Host], host),
		sameDomain(home.Hostname(), host):
		return nil
	}
	return &realmError{home: home.Host, realm: realm.Host, reason: "it is of another domain"}
}

// sameDomain reports whether two names have the registrable domain in common.
// Names under no managed suffix (host.svc.cluster.local) and addresses have
// none.
func sameDomain(a, b string) bool {
	domain := registrable(a)
	return domain != "" && domain == registrable(b)
}

func registrable(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if net.ParseIP(host) != nil {
		return ""
	}
	suffix, managed := publicsuffix.PublicSuffix(host)
	if !managed && !strings.Contains(suffix, ".") {
		return ""
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return ""
	}
	return domain
}

// realmError says that a credential was about to leave home.
type realmError struct{ home, realm, reason string }

// Error implements error.
func (e *realmError) Error() string {
	return fmt.Sprintf("the credential for %s is not sent to its token service %s: %s", e.home, e.realm, e.reason)
}
