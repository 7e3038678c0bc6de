package calls

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/redact"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

const (
	// callTimeout bounds a call of a policy. It is less than the default timeout of a webhook (10
	// s).
	callTimeout = 5 * time.Second
	// maxCallAnswer bounds the response to a call, in bytes.
	maxCallAnswer = 1 << 20
)

// Caller implements http.Get and the other HTTP functions, for listed hosts.
type Caller struct {
	hosts []string
	// open makes a guarded transport; transport is a shared one.
	open      func() http.RoundTripper
	transport http.RoundTripper
}

// New permits calls to hosts, through transports that check addresses after name resolution.
func New(hosts []string, open func() http.RoundTripper) *Caller {
	return &Caller{hosts: hosts, open: open, transport: open()}
}

// Do implements cel.HTTP. A response of any status is a result; a redirect is not followed.
func (c *Caller) Do(ctx context.Context, r cel.HTTPRequest) (any, error) {
	address, err := url.Parse(r.URL)
	if err != nil {
		return nil, errors.New("the URL cannot be read")
	}
	if !c.listed(address) {
		return nil, &cel.UnknownError{Gaps: []error{fmt.Errorf("%s is not asked for policies: policies.expressions.httpHosts does not list it", redact.URL(address))}}
	}
	transport, done, err := c.trusting(r.CABundle)
	if err != nil {
		return nil, err
	}
	defer done()
	var body []byte
	if r.Method != http.MethodGet {
		body, err = json.Marshal(r.Body)
		if err != nil {
			return nil, fmt.Errorf("the body cannot be written as JSON: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Headers {
		request.Header.Set(name, value)
	}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, &cel.UnknownError{Gaps: []error{fmt.Errorf("%s did not answer: %w", redact.URL(address), redact.Error(err))}}
	}
	text, err := limit.ReadAll(response.Body, maxCallAnswer, "the answer of "+redact.URL(address))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, &cel.UnknownError{Gaps: []error{err}}
	}
	return answered(text, response.StatusCode), nil
}

// answered is the result of a call in an expression: an object with the status next to its
// fields, or else the body and the status.
func answered(text []byte, status int) any {
	var body any
	if json.Unmarshal(text, &body) != nil {
		body = nil
	}
	if object, ok := body.(map[string]any); ok && object != nil {
		object["statusCode"] = int64(status)
		return object
	}
	return map[string]any{"body": body, "statusCode": int64(status)}
}

// listed reports whether a call to an address is allowed: a host that is listed without a port
// means the default port.
func (c *Caller) listed(address *url.URL) bool {
	usual, ok := map[string]string{"http": "80", "https": "443"}[address.Scheme]
	if !ok || address.Hostname() == "" {
		return false
	}
	host, port := strings.ToLower(address.Hostname()), address.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return (port == "" || port == usual) && slices.Contains(c.hosts, host) ||
		slices.Contains(c.hosts, host+":"+port) || port == "" && slices.Contains(c.hosts, host+":"+usual)
}

// trusting returns a transport that trusts only the authorities of a bundle; an empty bundle
// means the system's.
func (c *Caller) trusting(bundle string) (http.RoundTripper, func(), error) {
	if bundle == "" {
		return c.transport, func() {}, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(bundle)) {
		return nil, nil, errors.New("http.Client: no PEM certificate in the bundle")
	}
	transport, ok := c.open().(*http.Transport)
	if !ok {
		return nil, nil, errors.New("http.Client: internal error, which is a defect: the transport takes no authorities")
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, transport.CloseIdleConnections, nil
}
