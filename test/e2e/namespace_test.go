package e2e

import (
	"context"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestNamespaces: a policy that selects namespaces follows their labels, and the end of one
// namespace affects no other.
func TestNamespaces(t *testing.T) {
	s := guard(t, "namespaces", gateway.Configuration{})
	must(t, s.plane.ApplyYAML(t.Context(), s.edited(t, env.Policy{Name: "by-label"}, func(spec, _ map[string]any) {
		match := spec["rules"].([]any)[0].(map[string]any)["match"].(map[string]any)["any"].([]any)[0].(map[string]any)
		match["resources"].(map[string]any)["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"guard": "yes"}}
	})))
	t.Cleanup(func() { s.remove(t, "by-label") })
	labelled, free := s.in(t, "namespaces-yes", "guard", "yes"), s.in(t, "namespaces-no", "guard", "no")
	bare := s.env.Unsigned("shop/bare", "1.0")
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	s.awaitGuard(t, labelled, bare.Name, true)
	if _, err := free.dryRun(t.Context(), pod("bare", bare.Name)); err != nil {
		t.Errorf("a namespace that is not selected: %v", err)
	}

	s.label(t, labelled.namespace, "no")
	s.label(t, free.namespace, "yes")
	s.awaitGuard(t, labelled, bare.Name, false)
	s.awaitGuard(t, free, bare.Name, true)
	if got, err := free.dryRun(t.Context(), pod("signed", signed.Name)); err != nil || images(got)[0] != env.Pinned(signed) {
		t.Errorf("a signed image where the label came: %v", err)
	}

	t.Run("one that vanished", func(t *testing.T) {
		nowhere := *s
		nowhere.namespace = "namespaces-nowhere"
		for _, path := range []string{"/mutate", "/validate"} {
			said, err := s.caller(t, s.gateway).ask(t.Context(), path, nowhere.reviewOf(pod("late", bare.Name), "ann"))
			if err != nil || said.Allowed || said.Result.Message == "" {
				t.Errorf("%s: %+v, %v; want a denial with the reason", path, said, err)
			}
		}
	})
	t.Run("one that is going away", func(t *testing.T) { s.in(t, "namespaces-ending", "guard", "yes").tryEnd(t, signed.Name, bare.Name) })
}

// awaitGuard waits until an unsigned image is denied, or admitted.
func (s *scene) awaitGuard(t *testing.T, where *scene, image string, guarded bool) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		_, err := where.dryRun(ctx, pod("bare", image))
		switch {
		case err == nil && guarded:
			return errAdmitted
		case err != nil && guarded && !strings.Contains(err.Error(), "[unsigned]"):
			return err
		case err != nil && !guarded:
			return err
		}
		return nil
	})
}

func (s *scene) label(t *testing.T, namespace, guard string) {
	t.Helper()
	patch := `{"metadata":{"labels":{"guard":"` + guard + `"}}}`
	_, err := s.client.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, []byte(patch), meta.PatchOptions{})
	must(t, err)
}

// tryEnd ends a namespace in which a pod has something left to finish.
func (s *scene) tryEnd(t *testing.T, signed, bare string) {
	s.awaitGuard(t, s, bare, true)
	p := pod("last", signed)
	p.Finalizers = []string{"example.com/last"}
	_, err := s.create(t, p)
	must(t, err)
	must(t, s.client.CoreV1().Namespaces().Delete(t.Context(), s.namespace, meta.DeleteOptions{}))
	pods := s.client.CoreV1().Pods(s.namespace)
	eventually(t, func(ctx context.Context) error {
		got, err := pods.Get(ctx, "last", meta.GetOptions{})
		if err == nil && got.DeletionTimestamp == nil {
			err = errNotYet
		}
		return err
	})
	if _, err := s.create(t, pod("late", signed)); err == nil {
		t.Error("a pod was created in a namespace that is going away")
	}
	got, err := pods.Get(t.Context(), "last", meta.GetOptions{})
	must(t, err)
	got.Spec.Containers[0].Image = bare
	_, err = pods.Update(t.Context(), got, meta.UpdateOptions{})
	denied(t, "another image for a pod that is being deleted", err, "unsigned")
	got, err = pods.Get(t.Context(), "last", meta.GetOptions{})
	must(t, err)
	got.Finalizers = nil
	_, err = pods.Update(t.Context(), got, meta.UpdateOptions{})
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		_, err := pods.Get(ctx, "last", meta.GetOptions{})
		return gone(err)
	})
}
