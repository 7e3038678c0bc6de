package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/dial"
	"github.com/quaymaster/quaymaster/registry/internal/guard"
	"github.com/quaymaster/quaymaster/registry/internal/status"
)

// explain is the Error of a question that got no answer.
func (r *requester) explain(ctx context.Context, q request, err error) *Error {
	if nested, ok := errors.AsType[*url.Error](err); ok {
		err = nested.Err // without the address: it may be a signed one
	}
	failure := q.fail(image.Unavailable, err)
	if r.explainGuard(failure, err) || r.explainCredential(ctx, q, failure, err) {
		return failure
	}
	switch {
	case errors.Is(err, guard.ErrTooManyRedirects):
		failure.Kind = image.Corrupt
	case errors.Is(err, context.DeadlineExceeded):
		failure.Err = fmt.Errorf("no answer in time: %w", err)
		failure.Hint = fmt.Sprintf("retry; if it persists, check the network to %s, which did not answer in time (step: %s), or allow more time (--timeout)", q.repository.Registry(), q.op)
	case isCertificateError(err):
		failure.byHost(err, "trust its certificate authority with --registry-ca")
	case isCertificateWanted(err):
		failure.byHost(err, "it wants a client certificate that it trusts: configure one for this host")
	case errors.Is(err, http.ErrSchemeMismatch), isNoTLS(err):
		failure.byHost(err, "it has no TLS: if that is meant, set --plain-http "+q.repository.Registry())
	default:
		failure.Hint = "check that " + q.repository.Registry() + " is the right name, is up and can be reached from here"
	}
	return failure
}

// isNoTLS reports whether the answer to a TLS handshake was something else.
func isNoTLS(err error) bool {
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok
}

// explainGuard reports whether a request was kept from leaving.
func (r *requester) explainGuard(failure *Error, err error) bool {
	if realm, ok := errors.AsType[*guard.RealmError](err); ok {
		failure.Kind, failure.Err = image.Refused, realm
		failure.Hint = "if that token service is trusted, list it as a realm of " + realm.Origin
		return true
	}
	if stray, ok := errors.AsType[*guard.StrayError](err); ok {
		failure.byHost(stray, anotherRegistry)
		return true
	}
	if refused, ok := errors.AsType[*dial.RefusedError](err); ok {
		failure.byHost(refused, anotherRegistry)
		return true
	}
	return false
}

const anotherRegistry = "use a registry, with token service and storage, at addresses that may be connected to"

// byHost records a failure that is due to the choice of the host, and is the same at the next try.
func (e *Error) byHost(cause error, remedy string) {
	e.Err, e.Hint, e.final = &image.HostError{Err: cause}, remedy, true
}

// explainCredential reports whether the credential could not be had, is of a form that the
// registry has no use for, or gets no token.
func (r *requester) explainCredential(ctx context.Context, q request, failure *Error, err error) bool {
	if broken, ok := errors.AsType[*credentialError](err); ok {
		failure.Err, failure.final = broken, true
		failure.Hint = "check " + broken.source
		if kindIs(broken, image.Bound) {
			failure.Kind = image.Bound
		}
		return true
	}
	if unfit, ok := errors.AsType[*unfitError](err); ok {
		failure.Kind, failure.Err = image.Refused, unfit
		r.hint(ctx, q, failure)
		return true
	}
	if token, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		failure.Kind, failure.Status = kindOfToken(token.StatusCode, q.turn == anonymous), token.StatusCode
		failure.final = !status.IsTemporary(token.StatusCode)
		failure.Err = errors.New("no token from " + token.URL.Host)
		r.hint(ctx, q, failure)
		return true
	}
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		failure.Kind, failure.Status, failure.Err = image.Refused, http.StatusUnauthorized, nil
		r.hint(ctx, q, failure)
		return true
	}
	return false
}

// kindOfToken is the kind of a token service's status, which implies nothing about the
// image. In OAuth 2, 400 is an invalid credential or scope (RFC 6749, section 5.2).
func kindOfToken(code int, isBare bool) image.Kind {
	if status.BlamesCredential(code) && (!isBare || status.Kind(code) == image.Refused || code == http.StatusBadRequest) {
		return image.Refused
	}
	return image.Unavailable
}
