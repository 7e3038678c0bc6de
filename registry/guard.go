package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/internal/dial"
)

// guard is the last place that every request of one call passes, the ones for
// tokens and after redirects too. It knows which registry the call is for, so
// it can say what may not leave: a credential to a stranger, and anything to
// this machine's own ports.
type guard struct {
	base     http.RoundTripper
	home     *url.URL
	realms   realms
	loopback []string // hosts that may be loopback although their name is not
	meter    *Meter
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(q *http.Request) (*http.Response, error) {
	atHome := sameOrigin(g.home, q.URL)
	if !atHome {
		if err := g.check(q); err != nil {
			return nil, err
		}
	}
	g.meter.sent()
	answer, err := g.base.RoundTrip(q)
	if err == nil && atHome {
		g.meter.answered(q, answer.Header, answer.StatusCode)
	}
	return answer, err
}

// check decides about a request to another origin than the registry's.
func (g *guard) check(q *http.Request) error {
	host := q.URL.Hostname()
	if dial.IsLoopbackHost(host) && !dial.IsLoopbackHost(g.home.Hostname()) && !slices.Contains(g.loopback, host) {
		return &strayError{fmt.Sprintf("%s led to %s, this machine's own address", g.home.Host, q.URL.Host)}
	}
	carriesCredential := q.Header.Get("Authorization") != "" || (q.Body != nil && q.Body != http.NoBody)
	if carriesCredential {
		return g.realms.check(g.home, q.URL)
	}
	return nil
}

// strayError says that the registry led to where this client does not go.
type strayError struct{ reason string }

// Error implements error.
func (e *strayError) Error() string { return e.reason }

// errTooManyRedirects is an image.Bound.
var errTooManyRedirects = errors.New("too many redirects")

// redirect is the http.Client's CheckRedirect: followed without credentials,
// not for ever, and never out of TLS. via[0] and not the hop before decides
// whether the credential stays, since each hop starts from its headers again.
func redirect(q *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("%w: more than %d", errTooManyRedirects, maxRedirects)
	case q.Body != nil || first.Method != http.MethodGet && first.Method != http.MethodHead:
		return &strayError{"a token request was redirected; it carries a credential and stays"}
	case !strings.EqualFold(q.URL.Scheme, "https") && !strings.EqualFold(q.URL.Scheme, "http"):
		return &strayError{fmt.Sprintf("redirected to the scheme %q", q.URL.Scheme)}
	case strings.EqualFold(via[len(via)-1].URL.Scheme, "https") && !strings.EqualFold(q.URL.Scheme, "https"):
		return &strayError{fmt.Sprintf("redirected from HTTPS to plain HTTP at %s", q.URL.Host)}
	}
	if !sameOrigin(first.URL, q.URL) {
		q.Header.Del("Authorization")
	}
	q.Header.Del("Referer")
	q.URL.User = nil // a URL's own user information would become a header
	return nil
}
