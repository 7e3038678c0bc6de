package guard

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
	"registry-1.docker.io": {"auth.docker.io"},
	"registry.gitlab.com":  {"gitlab.com"},
}

// Realms decides which token service may see a registry's credential: the
// registry itself, one of the same registrable domain over TLS, and those
// listed here by the registry's host (with its port where it has one).
type Realms map[string][]string

// Lists reports whether the user lists the host of target for the registry at
// home.
func (r Realms) Lists(home, target *url.URL) bool {
	return target.Scheme == "https" && slices.Contains(r[home.Host], strings.ToLower(target.Hostname()))
}

// check returns nil when the credential for the registry at home may be sent
// to realm.
func (r Realms) check(home, realm *url.URL) error {
	host := strings.ToLower(realm.Hostname())
	switch {
	case SameOrigin(home, realm):
		return nil
	case isSameLoopback(strings.ToLower(home.Hostname()), host):
		return nil
	case realm.Scheme != "https" && (home.Scheme != "http" || host != strings.ToLower(home.Hostname())):
		return &RealmError{Origin: home.Host, Realm: realm.Host, Reason: "it is not asked over TLS"}
	case host == strings.ToLower(home.Hostname()),
		slices.Contains(knownRealms[home.Host], host),
		slices.Contains(r[home.Host], host),
		sameDomain(home.Hostname(), host):
		return nil
	}
	return &RealmError{Origin: home.Host, Realm: realm.Host, Reason: "it is of another domain"}
}

// isSameLoopback reports whether two names are this machine at one address, as localhost and
// 127.0.0.1 are: a program at another loopback address may belong to another user.
func isSameLoopback(a, b string) bool {
	canonical := func(host string) string {
		if ip := net.ParseIP(host); ip == nil || ip.Equal(net.IPv6loopback) {
			return "127.0.0.1" // a name resolves to the first address
		}
		return host
	}
	return dial.IsLoopbackHost(a) && dial.IsLoopbackHost(b) && canonical(a) == canonical(b)
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

// RealmError reports a credential that would have been sent to a foreign token service.
type RealmError struct {
	Origin string // the registry it is for
	Realm  string // the token service that was named
	Reason string
}

// Error implements error.
func (e *RealmError) Error() string {
	return fmt.Sprintf("the credential for %s is not sent to its token service %s: %s", e.Origin, e.Realm, e.Reason)
}

// SameOrigin reports whether a and b have scheme, host and port in common.
func SameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if strings.EqualFold(u.Scheme, "http") {
		return "80"
	}
	return "443"
}
