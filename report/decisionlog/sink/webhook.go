package sink

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/quaymaster/quaymaster/internal/dial"
	"github.com/quaymaster/quaymaster/internal/redact"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// WebhookConfig configures a Webhook.
type WebhookConfig struct {
	// URL is the address of the webhook: https, or http on this machine.
	URL string
	// TLS has the certificate authorities and the client certificate; nil: the system's
	// and none.
	TLS *tls.Config
	// Token is called for each request, and its result sent as a bearer token; nil: none is sent.
	Token func() (string, error)
}

// Webhook is a Receiver that posts lines: a body of JSON lines (application/x-ndjson), with the
// number of the first and the last line in the headers Quaymaster-First and Quaymaster-Last. A
// status of 200 to 299 acknowledges all of them.
type Webhook struct {
	url    string
	token  func() (string, error)
	client *http.Client
}

// NewWebhook creates a Webhook. It does not connect yet.
func NewWebhook(config WebhookConfig) (*Webhook, error) {
	if err := checkURL(config.URL); err != nil {
		return nil, fmt.Errorf("decision log's webhook: %w", err)
	}
	return &Webhook{url: config.URL, token: config.Token, client: newClient(config.TLS)}, nil
}

// checkURL rejects URLs that would send the log in plain text over a network.
func checkURL(text string) error {
	to, err := url.Parse(text)
	switch {
	case err != nil || to.Host == "" || to.Scheme != "https" && to.Scheme != "http":
		return fmt.Errorf("%q: want a URL such as https://collector.example/decisions", redact.Text(text))
	case to.User != nil:
		return errors.New("the URL has a password in it: use a token")
	case to.Scheme == "http" && !dial.IsLoopbackHost(to.Hostname()):
		return fmt.Errorf("%s: want https, since the log lists users and their workloads", to.Redacted())
	}
	return nil
}

// newClient connects through the guarded dialer, and follows no redirect: a redirect could send
// the log to another host.
func newClient(config *tls.Config) *http.Client {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Client{
		Timeout: deliveryTimeout,
		Transport: &http.Transport{
			DialContext: dial.New(dial.Config{}).DialContext, TLSClientConfig: config, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 1,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Deliver implements Receiver.
func (w *Webhook) Deliver(ctx context.Context, lines []decisionlog.Line) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(text(lines)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	request.Header.Set("User-Agent", "quaymaster")
	request.Header.Set("Quaymaster-First", strconv.FormatUint(lines[0].Seq, 10))
	request.Header.Set("Quaymaster-Last", strconv.FormatUint(lines[len(lines)-1].Seq, 10))
	if w.token != nil {
		token, err := w.token()
		if err != nil {
			return fmt.Errorf("token: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return redact.Error(err)
	}
	defer func() { _ = response.Body.Close() }() // the status was read
	said, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("%s answered %s: %q", request.URL.Host, response.Status, said)
	}
	return nil
}

// Close closes idle connections.
func (w *Webhook) Close() { w.client.CloseIdleConnections() }
