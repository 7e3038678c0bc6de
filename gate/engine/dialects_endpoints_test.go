package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/externaldata"
	"github.com/quaymaster/quaymaster/webhook/imagepolicy"
)

// surroundings are what endpoints want beside a gate: a namespace without labels, policies
// that fail closed, and a queue that is empty.
type surroundings struct{}

func (surroundings) Labels(context.Context, string) (map[string]string, error) { return nil, nil }
func (surroundings) FailOpen(*policy.Subject) bool                             { return false }
func (surroundings) Enter(context.Context, string) (func(), error)             { return func() {}, nil }
func (surroundings) Reserve(context.Context, string, int64) (func(), error)    { return func() {}, nil }

// unrecorded is a recorder that keeps nothing.
type unrecorded[T any] struct{}

func (unrecorded[T]) Record(context.Context, T) {}

// endpoint asks about an image of namespace shop, and returns whether it may run, and the message
// if not.
type endpoint struct {
	name string
	ask  func(t *testing.T, g *gate.Gate, image string) (allowed bool, says string)
}

func endpoints() []endpoint {
	return []endpoint{
		{"/mutate", admissionEndpoint(admission.Mutate)},
		{"/validate", admissionEndpoint(admission.Validate)},
		{"/imagepolicy", func(t *testing.T, g *gate.Gate, image string) (bool, string) {
			handler, err := imagepolicy.New(imagepolicy.Config{Decider: g, Namespaces: surroundings{}, Failure: surroundings{}, Queue: surroundings{}, Recorder: unrecorded[imagepolicy.Review]{}})
			if err != nil {
				t.Fatal(err)
			}
			var answer struct {
				Status struct {
					Allowed bool
					Reason  string
				}
			}
			post(t, handler, &answer, map[string]any{
				"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview",
				"spec": map[string]any{"namespace": "shop", "containers": []any{map[string]any{"image": image}}},
			})
			return answer.Status.Allowed, answer.Status.Reason
		}},
		{"/externaldata", func(t *testing.T, g *gate.Gate, image string) (bool, string) {
			handler, err := externaldata.New(externaldata.Config{
				Endpoint: externaldata.Verify, Decider: g, Namespaces: surroundings{}, Queue: surroundings{}, Recorder: unrecorded[externaldata.Batch]{},
			})
			if err != nil {
				t.Fatal(err)
			}
			var answer struct {
				Response struct {
					Items []struct{ Value, Error string }
				}
			}
			post(t, handler, &answer, map[string]any{
				"apiVersion": "externaldata.gatekeeper.sh/v1beta1", "kind": "ProviderRequest", "request": map[string]any{"keys": []any{"[shop]" + image}},
			})
			if len(answer.Response.Items) != 1 {
				t.Fatalf("%d items", len(answer.Response.Items))
			}
			return answer.Response.Items[0].Value != "", answer.Response.Items[0].Error
		}},
	}
}

func admissionEndpoint(which admission.Endpoint) func(*testing.T, *gate.Gate, string) (bool, string) {
	return func(t *testing.T, g *gate.Gate, image string) (bool, string) {
		queue, err := admission.NewQueue(admission.QueueBounds{})
		if err != nil {
			t.Fatal(err)
		}
		handler, err := admission.New(admission.Config{
			Endpoint: which, Decider: g, Namespaces: surroundings{}, Failure: surroundings{}, Queue: queue, Recorder: unrecorded[admission.Review]{},
		})
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Response struct {
				Allowed bool
				Status  struct{ Message string }
			}
		}
		post(t, handler, &answer, map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
			"uid": "1", "operation": "CREATE", "namespace": "shop", "name": "web", "kind": map[string]any{"group": "", "version": "v1", "kind": "Pod"},
			"object": map[string]any{
				"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "shop"},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": image}}},
			},
		}})
		return answer.Response.Allowed, answer.Response.Status.Message
	}
}

func post(t *testing.T, handler http.Handler, answer, question any) {
	t.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("HTTP %d: %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
}

// one returns the first spelling of a statement in each dialect.
func one(of statement) []spelling {
	var all []spelling
	seen := map[string]bool{}
	for _, s := range of.spellings {
		if kind, _, _ := strings.Cut(s.name, " "); !seen[kind] && kind != "Policy" && !strings.HasPrefix(kind, "Namespaced") {
			seen[kind], all = true, append(all, s)
		}
	}
	return all
}

// TestDialectsAtEachEndpoint holds that the answer is the same for the command line, an API
// server's webhooks and Gatekeeper. It is asked about images by digest, since only one of the
// endpoints can pin.
func TestDialectsAtEachEndpoint(t *testing.T) {
	v, with := newVariants(t), compilers(t)
	table := expected(t, v)
	for _, statement := range statements() {
		for _, s := range one(statement) {
			set := compile(t, with, v, s, enforce, "")
			for _, at := range endpoints() {
				g, err := v.Gate(set...)
				if err != nil {
					t.Fatal(err)
				}
				for _, image := range v.Images {
					if !strings.Contains(image.Name, "@") {
						continue
					}
					want := table[image.Reason][statement.column]
					allowed, says := at.ask(t, g, image.Name)
					if allowed != (want == "ok") || !allowed && !matchesWord(says, want) {
						t.Errorf("%s asks %s, which requires: %s; of an image with: %s\nallowed: %t, want %s:\n%s", at.name, s.name, statement.says, image.Reason, allowed, want, says)
					}
				}
			}
		}
	}
}

// matchesWord reports whether a message has a code of a word of the table, with "denied" or "could
// not be verified" to match.
func matchesWord(message, word string) bool {
	word, unable := strings.CutPrefix(word, "?")
	for _, code := range meaning(word) {
		if strings.Contains(message, "["+string(code)+"]") {
			return strings.Contains(message, "denied") != unable
		}
	}
	return false
}
