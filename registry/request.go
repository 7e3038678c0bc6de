package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/registry/internal/content"
	"github.com/quaymaster/quaymaster/registry/internal/guard"
	"github.com/quaymaster/quaymaster/registry/internal/status"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// request is one request to a registry.
type request struct {
	op         string // as in Error.Op
	method     string // GET or HEAD, or of a write (see push.go) POST or PUT
	repository image.Repository
	endpoint   string // manifests, blobs, referrers
	reference  string
	url        *url.URL // replaces the address that the fields above make: a next page
	query      url.Values
	accept     []string
	most       int64 // bytes of body
	turn       int   // index + 1 of the credential's source, or anonymous; 0: the first source that has one
	trail      *trail
	// take reads the body in place of answer.body. It may be called again for
	// another try, and its own error is an image.Corrupt.
	take func(header http.Header, body io.Reader) error
	// body is the content of a write, and bodyType its media type.
	body     []byte
	bodyType string
}

// writes reports whether the registry is to keep something.
func (q request) writes() bool { return q.method == http.MethodPost || q.method == http.MethodPut }

// actions are the permissions that the credential requires.
func (q request) actions() []string {
	if q.writes() {
		return []string{auth.ActionPull, auth.ActionPush}
	}
	return []string{auth.ActionPull}
}

// answers reports whether a status is the answer, and no refusal.
func (q request) answers(status int) bool {
	if q.writes() {
		return status == http.StatusCreated || status == http.StatusAccepted
	}
	return status == http.StatusOK
}

// answer is a 200 with its whole body.
type answer struct {
	header http.Header
	length int64 // Content-Length, or -1
	body   []byte
	read   int64    // bytes of body
	url    *url.URL // where it came from, after redirects
}

// fail makes an Error about q.
func (q request) fail(kind image.Kind, err error) *Error {
	return &Error{
		Op: q.op, Host: q.repository.Registry(), Repository: q.repository.Path(), Reference: q.reference,
		Kind: kind, Err: err,
	}
}

func (q request) address(origin *url.URL) *url.URL {
	if q.url != nil {
		return q.url
	}
	address := *origin
	address.Path = "/v2/" + q.repository.Path() + "/" + q.endpoint + "/" + q.reference
	address.RawQuery = q.query.Encode()
	return &address
}

// try sends a request once: with the challenge, the token and the redirects that follow
// from it, and reads the whole body. Its errors are *Error.
func (r *requester) try(ctx context.Context, q request) (*answer, error) {
	origin := r.schemes.origin(q.repository)
	ticket, leave, err := r.enter(ctx, r.account(q, origin.Host))
	if err != nil {
		return nil, notAsked(q, err)
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	ctx = auth.AppendScopesForHost(ctx, origin.Host, auth.ScopeRepository(q.repository.Path(), q.actions()...))
	var body io.Reader // a read has none, not even an empty one, so that it may be redirected
	if q.writes() {
		body = bytes.NewReader(q.body)
	}
	request, err := http.NewRequestWithContext(ctx, q.method, q.address(origin).String(), body)
	if err != nil {
		return nil, q.fail(image.Corrupt, err)
	}
	if q.bodyType != "" {
		request.Header.Set("Content-Type", q.bodyType)
	}
	if len(q.accept) > 0 { // in one header: some registries read the first only
		request.Header.Set("Accept", strings.Join(q.accept, ", "))
	}
	response, err := r.sender(origin, ticket, q).Do(request)
	if err != nil {
		failure := r.explain(ctx, q, err)
		if !r.transports.describes(origin) && r.schemes.concede(origin, err) {
			failure.final = false // the next try is without TLS
		}
		return nil, failure
	}
	defer func() { _ = response.Body.Close() }()
	if !q.answers(response.StatusCode) {
		failure := r.refusal(ctx, q, response)
		if r.schemes.learn(origin, response) {
			failure.Kind, failure.denied, failure.final = image.Unavailable, false, false // the next try is over TLS
		}
		return nil, failure
	}
	return r.read(ctx, q, response)
}

// sender is the auth client of one call; it shares the token cache.
func (r *requester) sender(origin *url.URL, ticket *ratelimit.Permit, q request) *auth.Client {
	owner := q.repository.Path()
	if q.turn != 0 {
		owner += "\n" + strconv.Itoa(q.turn) // no path has a line end
	}
	return &auth.Client{
		Client: &http.Client{
			Transport: &guard.Transport{
				Base:   roundTripper{requester: r, origin: origin, permit: ticket, trail: q.trail},
				Origin: origin, Realms: r.realms, Loopback: r.loopback,
			},
			CheckRedirect: guard.Redirect,
		},
		Header:   http.Header{"User-Agent": {r.userAgent}},
		Cache:    r.tokens.ForRepository(owner),
		ClientID: "quaymaster",
		// None: the dialer checks the address that it connects to, and resolves a realm once less.
		BlockedRealmPrefixes: []netip.Prefix{},
		Credential: func(ctx context.Context, host string) (auth.Credential, error) {
			if host != origin.Host {
				return auth.EmptyCredential, nil
			}
			credential, _, err := r.credentialOf(ctx, q)
			if err == nil {
				err = q.trail.fits(credential)
			}
			return credential, err
		},
	}
}

func (r *requester) read(ctx context.Context, q request, response *http.Response) (*answer, error) {
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, q.fail(image.Corrupt, errors.New("the body is encoded ("+content.Shorten(encoding)+"), which was not asked for"))
	}
	if q.take != nil {
		return r.stream(ctx, q, response)
	}
	body, err := limit.ReadAll(response.Body, q.most, "the answer")
	r.meter.read(len(body))
	if err != nil {
		if _, exceeded := errors.AsType[*limit.ExceededError](err); exceeded {
			return nil, q.fail(image.Bound, &image.ContentError{Err: err})
		}
		return nil, r.explain(ctx, q, err)
	}
	return &answer{header: response.Header, length: response.ContentLength, body: body, read: int64(len(body)), url: response.Request.URL}, nil
}

// stream hands the body to q.take, up to q.most bytes.
func (r *requester) stream(ctx context.Context, q request, response *http.Response) (*answer, error) {
	body := &bounded{from: response.Body, left: q.most}
	err := q.take(response.Header, body)
	read := q.most - body.left
	r.meter.read(int(read))
	switch {
	case err == nil:
		return &answer{header: response.Header, length: response.ContentLength, read: read, url: response.Request.URL}, nil
	case errors.Is(body.err, errExceeded):
		return nil, q.fail(image.Bound, &limit.ExceededError{What: "the answer", Most: q.most})
	case body.err != nil && !errors.Is(body.err, io.EOF):
		return nil, r.explain(ctx, q, body.err)
	}
	if exceeded, is := errors.AsType[*limit.ExceededError](err); is {
		return nil, q.fail(image.Bound, exceeded)
	}
	return nil, q.fail(image.Corrupt, err)
}

// bounded reads up to a bound, past which it fails, and keeps its failure.
type bounded struct {
	from io.Reader
	left int64
	err  error
}

var errExceeded = errors.New("too large")

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	var n int
	if b.left == 0 {
		var probe [1]byte
		n, b.err = b.from.Read(probe[:])
		if n > 0 {
			b.err = errExceeded
		}
		return 0, b.err
	}
	n, b.err = b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, b.err
}

// refusal is the Error of an answer that is no 200.
func (r *requester) refusal(ctx context.Context, q request, response *http.Response) *Error {
	failure := q.fail(status.Kind(response.StatusCode), nil)
	isBare := response.Request.Header.Get("Authorization") == ""
	failure.Status = response.StatusCode
	failure.final = !status.IsTemporary(response.StatusCode)
	failure.away = !guard.SameOrigin(r.schemes.origin(q.repository), response.Request.URL)
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	r.meter.read(len(body))
	if codes := parseCodes(body); len(codes) > 0 {
		failure.Err = codes
	}
	switch {
	case q.rejectsContent(failure, isBare):
		failure.Err = &image.ContentError{Err: cmp.Or(failure.Err, errRejected)}
	case !q.writes() && !isBare && status.BlamesCredential(failure.Status):
		failure.Kind = image.Refused
	}
	r.hint(ctx, q, failure)
	if wait := response.Header.Get("Retry-After"); wait != "" {
		failure.Err = &retryAfterError{value: wait, err: failure.Err}
	}
	return failure
}

// errRejected is the cause of a rejection without codes.
var errRejected = errors.New("the registry rejects the digest")

// parseCodes reads the distribution specification's error body; anything else
// is no codes.
func parseCodes(body []byte) errcode.Errors {
	var parsed struct {
		Errors errcode.Errors `json:"errors"`
	}
	if json.Unmarshal(body, &parsed) != nil {
		return nil //nolint:nilerr // a body of another form has no codes
	}
	for i := range parsed.Errors {
		code := &parsed.Errors[i]
		code.Code, code.Message, code.Detail = content.Shorten(code.Code), content.Shorten(code.Message), nil
	}
	return parsed.Errors[:min(len(parsed.Errors), 3)]
}
