// Package guard restricts the requests and credentials sent on behalf of one registry.
//
// A registry names other hosts: its token service, the storage of a blob, the next page.
// The guard sits below every request of one call. It sends a credential only to the
// registry itself and to a token service that belongs to it, follows redirects without it,
// and keeps other hosts away from this machine's own ports. oras-go's advisory
// GHSA-vh4v-2xq2-g5cg shows the attack that it prevents.
package guard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/internal/dial"
)

// Transport is the last place that every request of one call passes, the ones
// for tokens and after redirects too.
type Transport struct {
	Base http.RoundTripper
	// Origin is the origin of the registry that the call is for.
	Origin *url.URL
	// Realms selects the token services that may receive its credential.
	Realms Realms
	// Loopback lists hosts that may be this machine although their name does
	// not say so.
	Loopback []string
}

// RoundTrip implements http.RoundTripper. It fails with a *RealmError or a
// *StrayError where a request may not leave.
func (t *Transport) RoundTrip(q *http.Request) (*http.Response, error) {
	if !SameOrigin(t.Origin, q.URL) {
		if err := t.check(q); err != nil {
			return nil, err
		}
	}
	return t.Base.RoundTrip(q)
}

// check decides about a request to another origin than the registry's.
func (t *Transport) check(q *http.Request) error {
	host := q.URL.Hostname()
	if dial.IsLoopbackHost(host) && !dial.IsLoopbackHost(t.Origin.Hostname()) && !slices.Contains(t.Loopback, host) {
		return &StrayError{reason: fmt.Sprintf("%s led to %s, this machine's own address", t.Origin.Host, q.URL.Host)}
	}
	carriesCredential := q.Header.Get("Authorization") != "" || (q.Body != nil && q.Body != http.NoBody)
	if carriesCredential {
		return t.Realms.check(t.Origin, q.URL)
	}
	return nil
}

// StrayError reports that the registry led to a forbidden address.
type StrayError struct{ reason string }

// Error implements error.
func (e *StrayError) Error() string { return e.reason }

// MaxRedirects is enough: a blob takes one or two (to a store, to its region).
const MaxRedirects = 5

// ErrTooManyRedirects reports that a request was redirected more than MaxRedirects times.
var ErrTooManyRedirects = errors.New("too many redirects")

// Redirect is the http.Client's CheckRedirect: followed without credentials,
// not for ever, and never out of TLS. via[0] and not the hop before decides
// whether the credential stays, since each hop starts from its headers again.
func Redirect(q *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > MaxRedirects:
		return fmt.Errorf("%w: more than %d", ErrTooManyRedirects, MaxRedirects)
	case q.Body != nil || first.Method != http.MethodGet && first.Method != http.MethodHead:
		return &StrayError{reason: "a request for a token or to store something was redirected; its content is for one host and is not sent to another"}
	case !strings.EqualFold(q.URL.Scheme, "https") && !strings.EqualFold(q.URL.Scheme, "http"):
		return &StrayError{reason: fmt.Sprintf("redirected to the scheme %q", q.URL.Scheme)}
	case strings.EqualFold(via[len(via)-1].URL.Scheme, "https") && !strings.EqualFold(q.URL.Scheme, "https"):
		return &StrayError{reason: fmt.Sprintf("redirected from HTTPS to plain HTTP at %s", q.URL.Host)}
	}
	if !SameOrigin(first.URL, q.URL) {
		q.Header.Del("Authorization")
	}
	q.Header.Del("Referer")
	q.URL.User = nil // a URL's own user information would become a header
	return nil
}
