package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/fairqueue"
	"github.com/quaymaster/quaymaster/registry/internal/content"
	"github.com/quaymaster/quaymaster/registry/internal/guard"
	"github.com/quaymaster/quaymaster/registry/internal/status"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// Ping checks that a registry answers at a host (host or host:port): nil where its base
// endpoint, GET /v2/, answers as one, even if it requires a credential. None is sent. A
// page of a proxy or of a login is no registry's answer, with any status. It asks once,
// without retries; a failure is an *Error: image.Unavailable without an answer,
// image.Corrupt for another server's answer.
func (c *Client) Ping(ctx context.Context, registry string) error {
	// The repository is in no request; it normalizes the name as in references.
	repository, err := image.ParseRepository(registry + "/library/ping")
	if err == nil && repository.Registry() != image.NormalRegistry(registry) {
		err = fmt.Errorf("%q is not a host; write host or host:port", content.Shorten(registry))
	}
	if err != nil {
		return &Error{Op: opPing, Host: content.Shorten(registry), Kind: image.Corrupt, Err: err}
	}
	q := request{op: opPing, method: http.MethodGet, repository: repository}
	again, err := c.pingOnce(ctx, q)
	if again {
		_, err = c.pingOnce(ctx, q)
	}
	if failure, ok := errors.AsType[*Error](err); ok {
		failure.Repository = ""
	}
	return err
}

const opPing = "ping"

// pingOnce returns the outcome, and whether the host was found to require, or not to have,
// TLS, so that a repeated request can succeed.
func (r *requester) pingOnce(ctx context.Context, q request) (again bool, err error) {
	origin := r.schemes.origin(q.repository)
	ticket, leave, err := r.enter(ctx, r.account(q, origin.Host))
	if err != nil {
		return false, notAsked(q, err)
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, q.method, origin.JoinPath("/v2/").String(), nil)
	if err != nil {
		return false, q.fail(image.Corrupt, err)
	}
	request.Header.Set("User-Agent", r.userAgent)
	bare := &http.Client{ // no auth.Client: it would go for a token
		Transport: &guard.Transport{
			Base: roundTripper{requester: r, origin: origin, permit: ticket}, Origin: origin, Realms: r.realms, Loopback: r.loopback,
		},
		CheckRedirect: guard.Redirect,
	}
	response, err := bare.Do(request)
	if err != nil {
		return !r.transports.describes(origin) && r.schemes.concede(origin, err), r.explain(ctx, q, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	r.meter.read(len(body))
	if err != nil {
		return false, r.explain(ctx, q, err)
	}
	if isRegistry(response, body) {
		return false, nil
	}
	failure := q.fail(status.Kind(response.StatusCode), nil)
	failure.Status = response.StatusCode
	if response.StatusCode < http.StatusBadRequest || failure.Kind == image.Refused {
		failure.Kind = image.Corrupt
		failure.Err = errors.New("the answer (" + content.OrNone(mediaTypeOf(response.Header)) + ") is not a registry's")
		failure.Hint = "check that a proxy or a login page does not stand before it"
	}
	return r.schemes.learn(origin, response), failure
}

// isRegistry looks for signs of a registry: the version header that the docker registry
// and most others send, the object that they answer with, and when a credential is
// required, a challenge that clients support or the error body of the distribution
// specification.
func isRegistry(response *http.Response, body []byte) bool {
	isNamed := slices.ContainsFunc(response.Header.Values("Docker-Distribution-Api-Version"), func(v string) bool {
		return strings.HasPrefix(strings.TrimSpace(v), "registry/")
	})
	switch response.StatusCode {
	case http.StatusOK:
		if mediaTypeOf(response.Header) == "text/html" {
			return false
		}
		var object map[string]json.RawMessage
		return isNamed || json.Unmarshal(body, &object) == nil && object != nil
	case http.StatusUnauthorized:
		return isNamed || len(parseCodes(body)) > 0 || slices.ContainsFunc(response.Header.Values("WWW-Authenticate"), isChallenge)
	case http.StatusForbidden:
		return isNamed || len(parseCodes(body)) > 0
	}
	return false
}

// isChallenge reports whether a WWW-Authenticate header is one that a client of
// registries can meet: Basic or Bearer, both of which name a realm.
func isChallenge(header string) bool {
	scheme, parameters, _ := strings.Cut(strings.TrimSpace(header), " ")
	return (strings.EqualFold(scheme, "Basic") || strings.EqualFold(scheme, "Bearer")) &&
		strings.Contains(strings.ToLower(parameters), "realm=")
}

// IsLimited reports whether an account has reached its limit: it got 429, or the request
// was not sent for this reason. That does not count against the registry, since it answers
// other accounts.
func (e *Error) IsLimited() bool {
	_, rests := errors.AsType[*ratelimit.LimitedError](e.Err)
	return rests || e.Status == http.StatusTooManyRequests
}

// HasAnswered reports whether the registry answered with an error. A server error (5xx)
// may concern one image alone, as in a proxy of another registry.
func (e *Error) HasAnswered() bool { return e.Status != 0 }

// IsSilence reports whether a failure counts against the registry as a whole: it did not
// answer, or with an error of its own (429, 5xx). An error about one image or one
// credential does not count, nor does a failure on this side: a credential that could not
// be obtained, or a request that was never sent since requests to slow hosts used all
// seats.
func (e *Error) IsSilence() bool {
	if _, ours := errors.AsType[*credentialError](e.Err); ours || e.Kind != image.Unavailable {
		return false
	}
	switch e.Err {
	case context.DeadlineExceeded, context.Canceled: //nolint:errorlint // a caller that timed out has the bare error; a late answer is wrapped
		return false
	}
	if _, waited := errors.AsType[*fairqueue.WaitError](e.Err); waited {
		return false
	}
	if e.byCredential && e.Status == 0 {
		return false // the registry answered others
	}
	return e.Status < http.StatusBadRequest || e.Status >= http.StatusInternalServerError || status.IsTemporary(e.Status)
}
