package calls

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/redact"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
)

// Fetch requests JSON from a service on a listed host. It sends no credentials except the entry's
// own headers; a redirect is not followed.
func (c *Caller) Fetch(ctx context.Context, call *globalcontext.Call) (any, error) {
	address, err := url.Parse(call.URL)
	if err != nil {
		return nil, errors.New("the URL cannot be read")
	}
	shown := redact.URL(address)
	if !c.listed(address) {
		return nil, fmt.Errorf("%s is not asked for policies: policies.expressions.httpHosts does not list it", shown)
	}
	transport, done, err := c.trusting(call.CABundle)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, call.Method, call.URL, bytes.NewReader(call.Body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if call.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, header := range call.Headers {
		request.Header.Set(header.Name, header.Value)
	}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s did not answer: %w", shown, redact.Error(err))
	}
	text, err := limit.ReadAll(response.Body, globalcontext.MaxValue, "the answer of "+shown)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s answered %s", shown, response.Status)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("%s did not return JSON: %w", shown, err)
	}
	return value, nil
}
