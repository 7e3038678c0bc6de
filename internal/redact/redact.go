// Package redact removes secrets from texts for logs and errors.
//
// Registries redirect to addresses with a signature in the query, and users write passwords into
// URLs. A redacted query keeps its names and loses its values; user information is removed.
package redact

import (
	"net/url"
	"regexp"
	"strings"
)

// hidden replaces a removed value.
const hidden = "REDACTED"

// URL returns u without user information, query values and fragment. The nil
// URL is "".
func URL(u *url.URL) string {
	if u == nil {
		return ""
	}
	shown := *u
	if shown.User != nil {
		shown.User = url.User(hidden)
	}
	shown.Fragment, shown.RawFragment = "", ""
	shown.RawQuery = query(u.RawQuery)
	return shown.String()
}

func query(raw string) string {
	if raw == "" {
		return ""
	}
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		name, _, ok := strings.Cut(pair, "=")
		if !ok { // a bare name could be a secret as well
			pairs[i] = hidden
			continue
		}
		pairs[i] = name + "=" + hidden
	}
	return strings.Join(pairs, "&")
}

// urls finds URLs in a text; a URL ends at a blank, a quote or a bracket.
var urls = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>\\]+`)

// authorizations finds header values.
var authorizations = regexp.MustCompile(`(?i)\b(basic|bearer)\s+[A-Za-z0-9._~+/=-]{8,}`)

// Text returns s with every URL in it redacted as by URL, and without values of an Authorization
// header.
func Text(s string) string {
	s = urls.ReplaceAllStringFunc(s, func(found string) string {
		address := strings.TrimRight(found, ".,;:)]}")
		tail := found[len(address):]
		u, err := url.Parse(address)
		if err != nil {
			scheme, _, _ := strings.Cut(address, "://")
			return scheme + "://" + hidden + tail
		}
		return URL(u) + tail
	})
	return authorizations.ReplaceAllString(s, "$1 "+hidden)
}

// Error returns err with its text redacted; errors.Is and errors.As still find the wrapped
// errors. The nil error stays nil.
func Error(err error) error {
	if err == nil {
		return nil
	}
	return &redacted{err: err}
}

type redacted struct{ err error }

// Error implements error.
func (r *redacted) Error() string { return Text(r.err.Error()) }

// Unwrap returns the original error.
func (r *redacted) Unwrap() error { return r.err }
