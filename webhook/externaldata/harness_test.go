package externaldata_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/webhook/externaldata"
	"github.com/quaymaster/quaymaster/webhook/internal/endpointtest"
)

type (
	namespaces = endpointtest.Namespaces
	queue      = endpointtest.Queue
	recorder   = endpointtest.Recorder[externaldata.Batch]
)

// decide is a Decider that answers each request by itself.
type decide func(ctx context.Context, request gate.Request) gate.Outcome

func (d decide) DecideAll(ctx context.Context, requests []gate.Request, _ func(int, int)) []gate.Outcome {
	var out []gate.Outcome
	for _, request := range requests {
		out = append(out, d(ctx, request))
	}
	return out
}

func allow(context.Context, gate.Request) gate.Outcome { return gate.Outcome{Result: gate.Allow} }

func configOf(which externaldata.Endpoint, decider externaldata.Decider) externaldata.Config {
	return externaldata.Config{Endpoint: which, Decider: decider, Namespaces: namespaces{"shop": {"team": "a"}}, Queue: queue{}, Recorder: &recorder{}}
}

// setting changes a Config.
type setting func(*externaldata.Config)

func withRecorder(r externaldata.Recorder) setting {
	return func(c *externaldata.Config) { c.Recorder = r }
}

func withTimeout(d time.Duration) setting {
	return func(c *externaldata.Config) { c.Timeout = d }
}

func withKeys(k externaldata.Keys) setting { return func(c *externaldata.Config) { c.Keys = k } }

func withDigests(c *externaldata.Config) { c.Digests = true }

func withShadow(c *externaldata.Config) { c.Shadow = true }

func endpoint(t testing.TB, which externaldata.Endpoint, decider externaldata.Decider, with ...setting) *externaldata.Handler {
	t.Helper()
	return endpointWith(t, configOf(which, decider), with...)
}

// endpointWith makes an endpoint with a Config and settings.
func endpointWith(t testing.TB, config externaldata.Config, with ...setting) *externaldata.Handler {
	t.Helper()
	for _, set := range with {
		set(&config)
	}
	return testkit.Must(externaldata.New(config))(t)
}

// response is a ProviderResponse as Gatekeeper reads it.
type response struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Response   struct {
		Idempotent bool `json:"idempotent"`
		Items      []struct {
			Key   string `json:"key"`
			Value any    `json:"value"`
			Error string `json:"error"`
		} `json:"items"`
		SystemError string `json:"systemError"`
	} `json:"response"`
}

// request makes a body as Gatekeeper does.
func request(t testing.TB, keys ...string) []byte {
	t.Helper()
	return testkit.Must(json.Marshal(map[string]any{
		"apiVersion": "externaldata.gatekeeper.sh/v1beta1", "kind": "ProviderRequest", "request": map[string]any{"keys": keys},
	}))(t)
}

func post(handler http.Handler, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/externaldata/verify", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// read reads an answer and holds it against the contract.
func read(t testing.TB, w *httptest.ResponseRecorder) response {
	t.Helper()
	var r response
	decoder := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if r.APIVersion != "externaldata.gatekeeper.sh/v1beta1" || r.Kind != "ProviderResponse" || !r.Response.Idempotent ||
		(w.Code == http.StatusOK) != (r.Response.SystemError == "") || (len(r.Response.Items) == 0) != (r.Response.SystemError != "") {
		t.Fatalf("HTTP %d: %s", w.Code, w.Body)
	}
	for _, item := range r.Response.Items {
		text, isText := item.Value.(string)
		if (item.Error == "") != (isText && text != "") || len(item.Error) > 1<<10 || strings.Contains(item.Error, "\n") {
			t.Errorf("an item is a value or an error: %+v", item)
		}
	}
	return r
}

// send asks and returns the values and errors, in the order of the keys.
func send(t testing.TB, handler http.Handler, keys ...string) (values, errs []string) {
	t.Helper()
	r := read(t, post(handler, request(t, keys...)))
	if len(r.Response.Items) != len(keys) {
		t.Fatalf("%d items for %d keys: %s", len(r.Response.Items), len(keys), r.Response.SystemError)
	}
	for i, item := range r.Response.Items {
		if item.Key != keys[i] {
			t.Errorf("item %d is of %q, want %q", i, item.Key, keys[i])
		}
		value, _ := item.Value.(string)
		values, errs = append(values, value), append(errs, item.Error)
	}
	return values, errs
}
