package e2e

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// tooMany is how many empty objects are too many in one request, and fewer how
// many are not: 352 bytes are reckoned for each, of 24 MiB.
const tooMany, fewer = 80_000, 40_000

// complexMemory bounds the anonymous memory of a gateway that evaluates such objects for many
// clients at once, in bytes: twice the limit of parsed objects, and its base.
const complexMemory = 192 << 20

const freighterDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: freighters.boats.example}
spec:
  group: boats.example
  scope: Namespaced
  names: {plural: freighters, singular: freighter, kind: Freighter, listKind: FreighterList}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestTooComplex: an object that is small to send and large to parse is refused with a clear
// message, under the request's UID, and memory stays bounded.
func TestTooComplex(t *testing.T) {
	s := guard(t, "complex", gateway.Configuration{})
	must(t, s.plane.ApplyYAML(t.Context(), freighterDefinition))
	s.removeDefinition(t, "freighters.boats.example")
	text, err := s.env.YAML(env.Policy{
		Name: "complex", Kinds: []string{"Freighter", "Pod"}, Namespaces: []string{s.namespace}, Rule: audited(),
		Extractors: map[string]any{"Freighter": []any{map[string]any{"path": "/spec/ship"}}},
	})
	must(t, err)
	s.put(t, text)
	signed, err := s.env.Signed("shop/ship", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/wreck", "1.0")
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	freighters := client.Resource(schema.GroupVersionResource{Group: "boats.example", Version: "v1", Resource: "freighters"}).Namespace(s.namespace)
	create := func(ctx context.Context, image string, cargo int) error {
		_, err := freighters.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "boats.example/v1", "kind": "Freighter", "metadata": map[string]any{"name": "laden"},
			"spec": map[string]any{"ship": image, "cargo": slices.Repeat([]any{map[string]any{}}, cargo)},
		}}, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		return err
	}
	eventually(t, func(ctx context.Context) error {
		err := create(ctx, bare.Name, 1)
		if err == nil {
			return errAdmitted
		}
		if strings.Contains(err.Error(), "[unsigned]") { // by both configurations
			return nil
		}
		return err
	})

	denied(t, "an unsigned image among few values", create(t.Context(), bare.Name, fewer), "unsigned")
	if err := create(t.Context(), signed.Name, fewer); err != nil {
		t.Errorf("a signed image among as many values as may be: %v", err)
	}
	peak := s.gateway.Peak(t.Context())
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			err := create(t.Context(), signed.Name, tooMany)
			for _, word := range []string{"denied the request", "Freighter complex/laden", "too many values", "split it"} {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("the refusal of too many values does not say %q: %v", word, err)
				}
			}
		})
	}
	asking.Wait()
	if took := peak(); took > complexMemory {
		t.Errorf("it took %d MiB, want at most %d", took>>20, complexMemory>>20)
	}
	t.Run("at the endpoint", func(t *testing.T) { s.tryComplexReview(t, signed.ByDigest(), bare.ByDigest()) })
}

// tryComplexReview asks as an API server does: ask checks the UID of each answer.
func (s *scene) tryComplexReview(t *testing.T, signed, bare string) {
	endpoint := s.caller(t, s.gateway)
	for _, row := range []struct {
		reason, image string
		values        int
		old, allowed  bool
		says          string
	}{
		{"fewer values", signed, fewer, false, true, ""},
		{"fewer values and an unsigned image", bare, fewer, false, false, "unsigned"},
		{"too many values", signed, tooMany, false, false, "too many values"},
		{"too many together with the old object", signed, fewer, true, false, "too many values"},
	} {
		review := s.reviewOf(pod("laden", row.image), "ann")
		raw := string(review.Request.Object.Raw)
		raw = strings.Replace(raw, `"spec":{`, `"spec":{"cargo":[{}`+strings.Repeat(",{}", row.values-1)+`],`, 1)
		review.Request.Object.Raw = []byte(raw)
		if row.old {
			review.Request.Operation = "UPDATE"
			review.Request.OldObject.Raw = []byte(strings.Replace(raw, `"laden"`, `"laden","labels":{"team":"blue"}`, 1))
		}
		for _, path := range []string{"/mutate", "/validate"} {
			said, err := endpoint.ask(t.Context(), path, review)
			switch {
			case err != nil:
				t.Errorf("%s at %s: %v", row.reason, path, err)
			case said.Allowed != row.allowed, !row.allowed && !strings.Contains(said.Result.Message, row.says):
				t.Errorf("%s at %s: %+v, want allowed: %t, saying %q", row.reason, path, said, row.allowed, row.says)
			}
		}
	}
}

// removeDefinition takes a kind away when the test ends.
func (s *scene) removeDefinition(t *testing.T, name string) {
	t.Helper()
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	t.Cleanup(func() {
		definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		_ = client.Resource(definitions).Delete(context.WithoutCancel(t.Context()), name, meta.DeleteOptions{})
	})
}
