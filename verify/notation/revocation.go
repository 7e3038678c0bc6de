package notation

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/notaryproject/notation-core-go/revocation"
	"github.com/notaryproject/notation-core-go/revocation/crl"
	"github.com/notaryproject/notation-core-go/revocation/purpose"
	"github.com/notaryproject/notation-core-go/revocation/result"
	"golang.org/x/crypto/ocsp"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/internal/dial"
)

var (
	errOffline   = errors.New("revocation servers may not be asked (offline)")
	errUntrusted = errors.New("not asked, since the certificates that name the servers are not from a trusted issuer")
)

// revocationClient requests revocation status within bounds, and caches responses until their
// nextUpdate.
type revocationClient struct {
	transport http.RoundTripper // nil: no requests (offline)
	loopback  bool              // whether servers may be on this machine
	timeout   time.Duration
	memory    *cache.Cache[question, *answer]
	parsing   chan struct{} // taken while a list is parsed
}

// question is the cache key of a request: a method and a URL, which identify an OCSP request. A list also has
// the keys of its issuers: an authority with a new key publishes at the same URL.
type question struct{ method, url, issuers string }

// answer is a server's response, cached until next. Exactly one of body (OCSP) and list (CRL) is
// set, and neither if it is too large to be cached.
type answer struct {
	body []byte
	list *crl.Bundle
	next time.Time
}

func (a *answer) cost() int {
	if a.list == nil {
		return len(a.body)
	}
	cost := parsedCRLFactor * len(a.list.BaseCRL.Raw)
	if a.list.DeltaCRL != nil {
		cost += parsedCRLFactor * len(a.list.DeltaCRL.Raw)
	}
	return cost
}

func newRevocationClient(o Options) (*revocationClient, error) {
	memory, err := cache.New(cache.Options[question, *answer]{
		MaxCost: maxRemembered,
		Cost:    func(_ question, a *answer) int { return a.cost() },
		MaxTTL:  maxAnswerAge,
	})
	if err != nil {
		return nil, err
	}
	return &revocationClient{
		transport: o.Transport, loopback: o.InsecureLoopback, timeout: o.Timeout, memory: memory, parsing: make(chan struct{}, 1),
	}, nil
}

// revocationCheck is all revocation requests for one signature: about the signer's chain and about the
// timestamp authority's.
type revocationCheck struct{ signer, timestamper *revocationRequests }

// newRevocationCheck returns the revocation checks about a signer. Its chain must lead to one of the trusted
// certificates.
func (c *revocationClient) newRevocationCheck(trusted []*x509.Certificate) *revocationCheck {
	return &revocationCheck{
		signer:      &revocationRequests{client: c, purpose: purpose.CodeSigning, trusted: trusted, heard: make(map[question]*answer)},
		timestamper: &revocationRequests{client: c, purpose: purpose.Timestamping, verified: true, heard: make(map[question]*answer)},
	}
}

// until returns the earliest end of the responses; zero if there were none.
func (q *revocationCheck) until() time.Time {
	var first time.Time
	for _, chain := range []*revocationRequests{q.signer, q.timestamper} {
		chain.mu.Lock()
		for _, a := range chain.heard {
			if first.IsZero() || a.next.Before(first) {
				first = a.next
			}
		}
		chain.mu.Unlock()
	}
	return first
}

// revocationRequests is the revocation check of one chain. It implements notation's validator and the
// transports (http.RoundTripper for OCSP, crl.Fetcher). It records which certificate failed, why,
// and how long the responses are valid.
type revocationRequests struct {
	client  *revocationClient
	purpose purpose.Purpose
	// A level may accept an untrusted chain. Such a chain must not choose the hosts of outgoing
	// requests. So a chain is checked only if it was verified or leads to a trusted certificate.
	verified bool
	trusted  []*x509.Certificate

	chain   []*x509.Certificate // the certificates under check
	asked   bool                // whether notation got to this check
	revoked string              // name of the revoked certificate, if there is one
	failure error               // why the status of a certificate could not be looked up

	mu    sync.Mutex
	heard map[question]*answer
	cost  int // of what heard holds
}

// hear records a response that the result depends on. It depends on none that has ended: notation does not
// accept one, and may get the status from a list. Lists beyond the cache's size are recorded without content.
func (k *revocationRequests) hear(asked question, a *answer) {
	if !a.next.After(time.Now()) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if cost := a.cost(); k.cost+cost > maxRemembered {
		a = &answer{next: a.next}
	} else {
		k.cost += cost
	}
	k.heard[asked] = a
}

// remember caches the responses for later inquiries. Only verified responses are cached: they are
// not encrypted, and an injected one must not persist.
func (k *revocationRequests) remember() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for asked, a := range k.heard {
		if a.body != nil || a.list != nil {
			k.client.memory.Put(asked, a, time.Until(a.next))
		}
	}
}

// ValidateContext implements revocation.Validator.
func (k *revocationRequests) ValidateContext(ctx context.Context, o revocation.ValidateContextOptions) ([]*result.CertRevocationResult, error) {
	ctx, cancel := context.WithTimeout(ctx, k.client.timeout)
	defer cancel()
	k.asked, k.chain = true, o.CertChain
	if !k.verified && slices.ContainsFunc(o.CertChain, namesServer) && !slices.ContainsFunc(o.CertChain, k.isTrusted) {
		k.failure = errUntrusted
		return nil, errUntrusted
	}
	validator, err := revocation.NewWithOptions(revocation.Options{
		OCSPHTTPClient:   k.httpClient(k),
		CRLFetcher:       k,
		CertChainPurpose: k.purpose,
	})
	if err != nil {
		k.failure = err
		return nil, err
	}
	results, err := validator.ValidateContext(ctx, o)
	if err != nil {
		k.failure = err
		return nil, err
	}
	for i, r := range results {
		name := o.CertChain[i].Subject.String()
		switch r.Result {
		case result.ResultRevoked:
			k.revoked = "the revoked certificate " + name
		case result.ResultUnknown:
			k.failure = fmt.Errorf("certificate %s: %w", name, serverErrors(r))
		}
	}
	if k.failure == nil {
		k.remember()
	}
	return results, nil
}

func namesServer(certificate *x509.Certificate) bool {
	return len(certificate.OCSPServer) > 0 || len(certificate.CRLDistributionPoints) > 0
}

func (k *revocationRequests) isTrusted(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(k.trusted, certificate.Equal)
}

func serverErrors(r *result.CertRevocationResult) error {
	var all []error
	for _, server := range r.ServerResults {
		if server.Error != nil {
			all = append(all, fmt.Errorf("%s: %w", server.Server, server.Error))
		}
	}
	if len(all) == 0 {
		return errors.New("the server does not know its status")
	}
	return errors.Join(all...)
}

func (k *revocationRequests) httpClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport: transport,
		Timeout:   k.client.timeout,
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			if request.URL.Scheme != via[0].URL.Scheme {
				return fmt.Errorf("redirect from %s to %s", via[0].URL.Scheme, request.URL.Scheme)
			}
			return nil
		},
	}
}

// RoundTrip implements http.RoundTripper for OCSP: it responds from the cache or sends a request,
// and records the response.
func (k *revocationRequests) RoundTrip(request *http.Request) (*http.Response, error) {
	first := request
	for first.Response != nil { // redirected: the redirecting server must not choose the cache key
		first = first.Response.Request
	}
	asked := question{method: first.Method, url: first.URL.String()}
	certificate, issuer, err := k.about(first.URL.EscapedPath())
	if err != nil {
		return nil, err
	}
	if known, ok := k.client.memory.Get(asked); ok {
		k.hear(asked, known)
		return &http.Response{
			StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
			Body: io.NopCloser(bytes.NewReader(known.body)), ContentLength: int64(len(known.body)), Request: request,
		}, nil
	}
	response, err := k.client.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Request = request
		return response, nil
	}
	body, err := io.ReadAll(bounded(response.Body, maxOCSPAnswer))
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	proved, err := vouched(body, certificate, issuer, time.Now())
	if err != nil { // notation may request a list instead
		return nil, err
	}
	heard := &answer{body: body, next: proved.NextUpdate} // without an end, notation does not accept it
	if by := proved.Certificate; by != nil && by.NotAfter.Before(heard.next) {
		heard.next = by.NotAfter
	}
	if proved.Status != ocsp.Unknown { // else the result depends on a list
		k.hear(asked, heard)
	}
	return response, nil
}

// RoundTrip implements http.RoundTripper: it sends the request if that is allowed, and bounds the
// response.
func (c *revocationClient) RoundTrip(request *http.Request) (*http.Response, error) {
	if c.transport == nil {
		return nil, errOffline
	}
	if host := request.URL.Hostname(); !c.loopback && dial.IsLoopbackHost(host) {
		return nil, fmt.Errorf("the certificate names a server on this machine (%s), which is not asked", host)
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = bounded(response.Body, maxAnswer)
	return response, nil
}

// boundedBody fails beyond its bound, where io.LimitReader would report a regular end.
type boundedBody struct {
	io.ReadCloser
	most, left int64
}

func bounded(body io.ReadCloser, most int64) *boundedBody {
	return &boundedBody{ReadCloser: body, most: most, left: most}
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	p = p[:min(int64(len(p)), max(b.left, 0)+1)] // one more byte detects an excess
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n, fmt.Errorf("the answer has more than %d bytes", b.most)
	}
	return n, err
}
