package registry

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/redact"
	"github.com/quaymaster/quaymaster/registry/internal/status"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// Error reports the request, the registry, the failure, and the remedy. It is an
// image.Failure.
type Error struct {
	Op         string     // the operation, as in "fetch manifest"
	Host       string     // the registry, or the layout
	Repository string     // the path in it
	Reference  string     // tag or digest; "" where there is none
	Status     int        // HTTP status; 0 without an answer
	Kind       image.Kind // how it failed
	Hint       string     // the remedy; may be ""
	Err        error      // the cause; may be nil

	// final keeps a failure from being tried again although its kind would.
	final bool
	// away: the target of a redirect answered, and not the registry.
	away bool
	// denied: the credential was refused.
	denied bool
	// missing: the registry has nothing there that the credential can read.
	missing bool
	// rests: the request was not sent, since the credential has reached its limit.
	rests bool
	// byCredential is as in ByCredential.
	byCredential bool
}

// Error returns one sentence, without secrets of URLs.
func (e *Error) Error() string {
	var text strings.Builder
	phrase := phrases[e.Kind]
	if e.Kind == image.Corrupt && e.Status >= http.StatusBadRequest {
		phrase = "the request was rejected"
	}
	fmt.Fprintf(&text, "%s %s: %s", e.Op, e.subject(), phrase)
	if e.Status != 0 {
		fmt.Fprintf(&text, " (HTTP %d)", e.Status)
	}
	if e.Err != nil {
		text.WriteString(": " + redact.Text(e.Err.Error()))
	}
	if e.Hint != "" {
		text.WriteString("; " + e.Hint)
	}
	return text.String()
}

// Advice implements image.Advised: the hint, as Error writes it.
func (e *Error) Advice() string { return e.Hint }

// phrases are the kinds as parts of a sentence.
var phrases = map[image.Kind]string{
	image.NotFound:    "not found",
	image.Refused:     "refused",
	image.Unavailable: "no usable answer",
	image.Bound:       "too much",
	image.Corrupt:     "the answer contradicts itself",
}

func (e *Error) subject() string {
	subject := e.Host
	if e.Repository != "" {
		subject += "/" + e.Repository
	}
	switch {
	case e.Reference == "":
		return subject
	case strings.Contains(e.Reference, ":"):
		return subject + "@" + e.Reference
	default:
		return subject + ":" + e.Reference
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FailureKind implements image.Failure.
func (e *Error) FailureKind() image.Kind { return e.Kind }

// Temporary reports whether asking again could help.
func (e *Error) Temporary() bool { return e.Kind == image.Unavailable && !e.final }

// ByCredential implements image.Attributed.
func (e *Error) ByCredential() bool { return e.byCredential }

// rejectsContent reports whether a failure to read a blob, or a manifest by digest, is due to the
// digest, which comes from content: the registry itself rejected the request, and not a credential.
func (q request) rejectsContent(failure *Error, isBare bool) bool {
	ofContent := q.endpoint == "blobs" || q.endpoint == "manifests" && !isTag(q.reference)
	return ofContent && !q.writes() && !failure.away && failure.Kind == image.Corrupt && (isBare || status.IsAboutContent(failure.Err))
}

// statusOf returns the HTTP status of a registry's refusal, or 0.
func statusOf(err error) int {
	if failure, ok := errors.AsType[*Error](err); ok {
		return failure.Status
	}
	return 0
}

// notAsked is the Error of a question that was never sent.
func notAsked(q request, err error) *Error {
	failure := q.fail(image.Unavailable, err)
	_, failure.rests = errors.AsType[*ratelimit.LimitedError](err)
	failure.final = failure.rests || errors.Is(err, errNoSeat)
	return failure
}

// isCertificateError reports whether TLS did not trust the registry.
func isCertificateError(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// isCertificateWanted reports whether the host ended TLS because it requires another
// client certificate. The alert (RFC 8446, section 6.2) has no exported type; all
// certificate alerts from the other side concern the client's certificate.
func isCertificateWanted(err error) bool {
	failure, ok := errors.AsType[*net.OpError](err)
	return ok && failure.Op == "remote error" && strings.Contains(failure.Err.Error(), "certificate")
}

// kindIs reports whether err is a Failure of the kind.
func kindIs(err error, kind image.Kind) bool { return image.KindOf(err) == kind }
