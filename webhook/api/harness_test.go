package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/api"
	"github.com/quaymaster/quaymaster/webhook/internal/endpointtest"
	"github.com/quaymaster/quaymaster/workload"
)

// people are the users of tokens: "ci-token" and "dev-token". The lookup of "lost-token"
// fails.
type people struct{}

func (people) Authenticate(_ context.Context, token string) (policy.User, error) {
	switch token {
	case "ci-token":
		return policy.User{Name: "ci", Groups: []string{"builders"}}, nil
	case "dev-token":
		return policy.User{Name: "dev"}, nil
	case "lost-token":
		return policy.User{}, errors.New("10.0.0.1:6443: connection refused")
	case "broken-token":
		panic("the authenticator fell")
	}
	return policy.User{}, nil
}

// judge is a gate that allows everything, and denies images with "bad" in the name.
// It keeps the requests.
type judge struct {
	mu       sync.Mutex
	requests []gate.Request
	// before, if set, is called with each call's context.
	before func(ctx context.Context)
}

func (j *judge) DecideAll(ctx context.Context, requests []gate.Request, _ func(int, int)) []gate.Outcome {
	j.mu.Lock()
	j.requests = append(j.requests, requests...)
	j.mu.Unlock()
	if j.before != nil {
		j.before(ctx)
	}
	outcomes := make([]gate.Outcome, len(requests))
	for i, request := range requests {
		o := gate.Outcome{
			Result: gate.Allow, Source: request.Object.Source(),
			Subject: &policy.Subject{Kind: request.Object.Kind(), Version: request.Object.Version(), Namespace: request.Subject.Namespace, Name: request.Object.Name()},
		}
		uses, err := workload.Extract(request.Object)
		if err != nil {
			o.Result = gate.Deny
		}
		for _, use := range uses {
			ref, err := image.Parse(use.Image)
			if err != nil {
				continue
			}
			v := gate.Verdict{Image: policy.Image{Container: use.Container, Pointer: use.Pointer, Role: string(use.Role), Ref: ref}, Result: gate.Allow}
			if strings.Contains(use.Image, "bad") {
				v.Result, o.Result = gate.Deny, gate.Deny
				v.Reasons = []policy.Reason{{Code: policy.Unsigned, Message: "no signature"}}
			}
			o.Verdicts = append(o.Verdicts, v)
		}
		outcomes[i] = o
	}
	return outcomes
}

type recorder = endpointtest.Recorder[api.Call]

func newEndpoint(t testing.TB, decider api.Decider, with ...setting) *api.Handler {
	t.Helper()
	config := configOf(decider)
	for _, set := range with {
		set(&config)
	}
	return testkit.Must(api.New(config))(t)
}

func configOf(decider api.Decider) api.Config {
	return api.Config{Authenticator: people{}, Decider: decider, Namespaces: labels{"default": nil}, Recorder: &recorder{}}
}

// setting changes a Config.
type setting func(*api.Config)

func withRecorder(r api.Recorder) setting { return func(c *api.Config) { c.Recorder = r } }

func withNamespaces(n api.Namespaces) setting { return func(c *api.Config) { c.Namespaces = n } }

func withTimeout(d time.Duration) setting { return func(c *api.Config) { c.Timeout = d } }

func withLimits(l api.Limits) setting { return func(c *api.Config) { c.Limits = l } }

func withCallers(users, groups []string) setting {
	return func(c *api.Config) { c.Callers = &api.Callers{Users: users, Groups: groups} }
}

// withoutTokens makes all callers this user.
func withoutTokens(user string) setting {
	return func(c *api.Config) { c.Authenticator, c.User = nil, user }
}

// call is one request; change may be nil.
func call(handler http.Handler, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/verify", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer ci-token")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// manifests makes a request one of YAML.
func manifests(r *http.Request) { r.Header.Set("Content-Type", "application/yaml") }

func listOf(t testing.TB, w *httptest.ResponseRecorder) report.List {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("HTTP %d: %s", w.Code, w.Body)
	}
	var list report.List
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if list.APIVersion != report.APIVersion || list.Kind != report.Kind {
		t.Fatalf("no record: %s", w.Body)
	}
	return list
}

func errorOf(t testing.TB, w *httptest.ResponseRecorder) api.Error {
	t.Helper()
	var e api.Error
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if e.APIVersion != report.APIVersion || e.Kind != api.ErrorKind || e.Status != w.Code || e.Message == "" {
		t.Fatalf("HTTP %d, no error: %s", w.Code, w.Body)
	}
	return e
}
