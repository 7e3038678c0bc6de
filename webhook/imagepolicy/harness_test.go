package imagepolicy_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/api/imagepolicy/v1alpha1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/kyverno"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/webhook/imagepolicy"
)

func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// harbor has a registry on loopback, a signer and a real gate.
type harbor struct {
	*gatetest.Yard
	client *registry.Client
	signer *verifytest.Signer
	state  gate.Fixed
}

func newHarbor(t testing.TB) *harbor {
	t.Helper()
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	sigstore := must(verifytest.New(verifytest.Options{}))(t)
	snapshot := must(trust.New(trust.Options{TrustedRoot: sigstore.TrustedRoot()}))(t).Snapshot()
	h := &harbor{
		Yard: gatetest.New(server, sigstore), client: must(registry.New(registry.Config{}))(t),
		signer: must(verifytest.KeySigner(verifytest.KeyOptions{}))(t),
	}
	t.Cleanup(h.client.Close)
	h.state.Prover = prover{Snapshot: snapshot, ByFormat: verify.ByFormat{attest.Cosign: cosign.New(snapshot)}}
	return h
}

type prover struct {
	*trust.Snapshot
	verify.ByFormat
}

type session struct {
	*registry.Client
	meter *registry.Meter
}

func (session) Scope() string { return "" }

func (s session) Cost() gate.Cost {
	return gate.Cost{Requests: s.meter.Requests(), RateLimitRemaining: -1}
}

// Open implements gate.Registries.
func (h *harbor) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	meter := &registry.Meter{}
	return session{Client: h.client.With(meter), meter: meter}, nil
}

// signedImages wants the harbor's images below shop signed; changes replace texts
// in it, two by two.
const signedImages = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: by-key
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["HOST/shop/*"]
      attestors:
      - entries:
        - keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}
`

// gate returns a gate with the policy.
func (h *harbor) gate(t testing.TB, changes ...string) *gate.Gate {
	t.Helper()
	engine := must(jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader}))(t)
	compiler := must(kyverno.New(kyverno.Options{Engine: engine}))(t)
	key := string(must(json.Marshal(string(h.signer.PublicPEM())))(t))
	text := strings.NewReplacer(changes...).Replace(signedImages)
	text = strings.NewReplacer("HOST", h.Registry.Host(), "KEY", key).Replace(text)
	h.state.Policies = must(policy.NewSet(must(compiler.Compile([]byte(text), "test.yaml"))(t)))(t)
	return must(gate.New(gate.Config{Registries: h, State: h.state}))(t)
}

// signed builds an image and signs it.
func (h *harbor) signed(t testing.TB, name string) gatetest.Image {
	t.Helper()
	built := h.Build("shop/"+name, "1", name)
	if err := h.SignLegacy(built, verifytest.Claim{Signer: h.signer, NoLog: true}, nil); err != nil {
		t.Fatal(err)
	}
	return built
}

// namespaces are those that are there.
type namespaces map[string]map[string]string

func (n namespaces) Labels(_ context.Context, name string) (map[string]string, error) {
	labels, ok := n[name]
	if !ok {
		return nil, errors.New("namespace " + name + " is not there")
	}
	return labels, nil
}

// failure is the setting of every policy.
type failure bool

func (f failure) FailOpen(*policy.Subject) bool { return bool(f) }

// queue has room for so many at once, and is empty handed when closed.
type queue struct{ full, dry bool }

var errFull = errors.New("full")

func (q queue) Reserve(context.Context, int64) (func(), error) {
	if q.dry {
		return nil, errFull
	}
	return func() {}, nil
}

func (q queue) Enter(context.Context) (func(), error) {
	if q.full {
		return nil, errFull
	}
	return func() {}, nil
}

// recorder keeps reviews.
type recorder struct {
	mu      sync.Mutex
	reviews []imagepolicy.Review
}

func (r *recorder) Record(_ context.Context, review imagepolicy.Review) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reviews = append(r.reviews, review)
}

func (r *recorder) last(t testing.TB) imagepolicy.Review {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.reviews) == 0 {
		t.Fatal("nothing was recorded")
	}
	return r.reviews[len(r.reviews)-1]
}

// decide is a Decider.
type decide func(ctx context.Context, request gate.Request) gate.Outcome

func (d decide) Decide(ctx context.Context, request gate.Request) gate.Outcome {
	return d(ctx, request)
}

func allow(context.Context, gate.Request) gate.Outcome { return gate.Outcome{Answer: gate.Allow} }

func configOf(decider imagepolicy.Decider) imagepolicy.Config {
	return imagepolicy.Config{
		Decider: decider, Namespaces: namespaces{"shop": {"team": "a"}}, Failure: failure(false), Queue: queue{},
	}
}

func door(t testing.TB, decider imagepolicy.Decider, with ...imagepolicy.Option) *imagepolicy.Handler {
	t.Helper()
	return must(imagepolicy.New(configOf(decider), with...))(t)
}

// review makes a body as an API server does.
func review(t testing.TB, namespace string, images ...string) []byte {
	t.Helper()
	r := v1alpha1.ImageReview{Spec: v1alpha1.ImageReviewSpec{Namespace: namespace}}
	r.APIVersion, r.Kind = "imagepolicy.k8s.io/v1alpha1", "ImageReview"
	for _, image := range images {
		r.Spec.Containers = append(r.Spec.Containers, v1alpha1.ImageReviewContainerSpec{Image: image})
	}
	return must(json.Marshal(r))(t)
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
