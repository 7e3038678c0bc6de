package imagepolicy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/api/imagepolicy/v1alpha1"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/imagepolicy"
	"github.com/quaymaster/quaymaster/webhook/internal/endpointtest"
)

type (
	namespaces = endpointtest.Namespaces
	queue      = endpointtest.Queue
	recorder   = endpointtest.Recorder[imagepolicy.Review]
)

// failure is the setting of every policy.
type failure bool

func (f failure) FailOpen(*policy.Subject) bool { return bool(f) }

// decide is a Decider.
type decide func(ctx context.Context, request gate.Request) gate.Outcome

func (d decide) Decide(ctx context.Context, request gate.Request) gate.Outcome {
	return d(ctx, request)
}

func allow(context.Context, gate.Request) gate.Outcome { return gate.Outcome{Result: gate.Allow} }

func configOf(decider imagepolicy.Decider) imagepolicy.Config {
	return imagepolicy.Config{
		Decider: decider, Namespaces: namespaces{"shop": {"team": "a"}}, Failure: failure(false), Queue: queue{}, Recorder: &recorder{},
	}
}

// setting changes a Config.
type setting func(*imagepolicy.Config)

func withRecorder(r imagepolicy.Recorder) setting {
	return func(c *imagepolicy.Config) { c.Recorder = r }
}

func withTimeout(d time.Duration) setting {
	return func(c *imagepolicy.Config) { c.Timeout = d }
}

func withShadow(c *imagepolicy.Config) { c.Shadow = true }

func endpoint(t testing.TB, decider imagepolicy.Decider, with ...setting) *imagepolicy.Handler {
	t.Helper()
	return endpointWith(t, configOf(decider), with...)
}

// endpointWith makes an endpoint with a Config and settings.
func endpointWith(t testing.TB, config imagepolicy.Config, with ...setting) *imagepolicy.Handler {
	t.Helper()
	for _, set := range with {
		set(&config)
	}
	return testkit.Must(imagepolicy.New(config))(t)
}

// review makes a body as an API server does.
func review(t testing.TB, namespace string, images ...string) []byte {
	t.Helper()
	r := v1alpha1.ImageReview{Spec: v1alpha1.ImageReviewSpec{Namespace: namespace}}
	r.APIVersion, r.Kind = "imagepolicy.k8s.io/v1alpha1", "ImageReview"
	for _, image := range images {
		r.Spec.Containers = append(r.Spec.Containers, v1alpha1.ImageReviewContainerSpec{Image: image})
	}
	return testkit.Must(json.Marshal(r))(t)
}

func post(handler http.Handler, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/imagereview", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// read reads an answer and holds it against the contract.
func read(t testing.TB, w *httptest.ResponseRecorder) v1alpha1.ImageReviewStatus {
	t.Helper()
	var r v1alpha1.ImageReview
	decoder := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if w.Code != http.StatusOK || r.APIVersion != "imagepolicy.k8s.io/v1alpha1" || r.Kind != "ImageReview" {
		t.Fatalf("HTTP %d: %s", w.Code, w.Body)
	}
	if r.Status.Allowed != (r.Status.Reason == "") {
		t.Errorf("a reason is there if and only if the review is not allowed: %s", w.Body)
	}
	return r.Status
}

func send(t testing.TB, handler http.Handler, namespace string, images ...string) v1alpha1.ImageReviewStatus {
	t.Helper()
	return read(t, post(handler, review(t, namespace, images...)))
}

// golden compares with a file, which -update writes anew.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}
