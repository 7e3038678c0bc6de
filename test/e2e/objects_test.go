package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestObjects: wherever a pod has an image, and whenever it gets one.
func TestObjects(t *testing.T) {
	s := guard(t, "objects", gateway.Configuration{})
	bare := s.env.Unsigned("shop/bare", "1.0")
	s.makeOlder(t, bare)
	s.enforce(t, env.Policy{Name: "objects", Namespaces: []string{"objects"}})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	next, err := s.env.Signed("shop/web", "1.1")
	must(t, err)

	t.Run("objects older than the policy", func(t *testing.T) { s.tryOlder(t, next) })
	t.Run("init containers and volumes", func(t *testing.T) { s.tryPlaces(t, signed, bare) })
	t.Run("a label costs nothing", func(t *testing.T) { s.tryLabel(t, signed) })
	t.Run("an object that is being deleted", func(t *testing.T) { s.tryDeleted(t, signed, next, bare) })
	t.Run("forged annotations", func(t *testing.T) { s.tryForged(t, signed, bare) })
}

// makeOlder makes a pod and a Deployment of an image that a policy to come will
// refuse.
func (s *scene) makeOlder(t *testing.T, bare gatetest.Image) {
	_, err := s.create(t, pod("older", bare.Name))
	must(t, err)
	none := int32(0)
	labels := map[string]string{"app": "older"}
	older := &apps.Deployment{ObjectMeta: meta.ObjectMeta{Name: "older"}}
	older.Spec.Replicas, older.Spec.Selector = &none, &meta.LabelSelector{MatchLabels: labels}
	older.Spec.Template = core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: pod("", bare.Name).Spec}
	_, err = s.client.AppsV1().Deployments(s.namespace).Create(t.Context(), older, meta.CreateOptions{})
	must(t, err)
}

// tryOlder: what runs already can be labelled, scaled, reported on and deleted;
// it gets no other image, and no other pods, that the policy refuses.
func (s *scene) tryOlder(t *testing.T, next gatetest.Image) {
	pods, deployments := s.client.CoreV1().Pods(s.namespace), s.client.AppsV1().Deployments(s.namespace)
	another := s.env.Unsigned("shop/another", "1.0")
	merge := types.MergePatchType
	_, err := pods.Patch(t.Context(), "older", merge, []byte(`{"metadata":{"labels":{"team":"blue"}}}`), meta.PatchOptions{})
	must(t, err)
	_, err = pods.Patch(t.Context(), "older", merge, []byte(`{"status":{"reason":"Known"}}`), meta.PatchOptions{}, "status")
	must(t, err)
	_, err = pods.Patch(t.Context(), "older", merge, fmt.Appendf(nil, `{"spec":{"containers":[{"name":"c0","image":%q}]}}`, another.Name), meta.PatchOptions{})
	denied(t, "another unsigned image", err, "unsigned")
	got, err := pods.Patch(t.Context(), "older", merge, fmt.Appendf(nil, `{"spec":{"containers":[{"name":"c0","image":%q}]}}`, next.Name), meta.PatchOptions{})
	must(t, err)
	if !slices.Equal(images(got), []string{env.Pinned(next)}) {
		t.Errorf("a signed image became %v", images(got))
	}
	must(t, pods.Delete(t.Context(), "older", meta.DeleteOptions{}))

	scale, err := deployments.GetScale(t.Context(), "older", meta.GetOptions{})
	must(t, err)
	scale.Spec.Replicas = 1
	_, err = deployments.UpdateScale(t.Context(), "older", scale, meta.UpdateOptions{})
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		got, err := deployments.Get(ctx, "older", meta.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range got.Status.Conditions {
			if c.Type == apps.DeploymentReplicaFailure && strings.Contains(c.Message, "[unsigned]") {
				return nil
			}
		}
		return fmt.Errorf("its pods are not refused: %v", got.Status.Conditions)
	})
}

// tryPlaces: each image of an object is pinned if it is signed, and denied by itself if it is
// not.
func (s *scene) tryPlaces(t *testing.T, signed, bare gatetest.Image) {
	build := func(name string, images [3]string) *core.Pod {
		p := withVolume(pod(name, images[0]), images[2])
		p.Spec.InitContainers = []core.Container{{Name: "init", Image: images[1]}}
		return p
	}
	good := signed.Name
	for i, place := range []string{"container", "init container", "volume"} {
		images := [3]string{good, good, good}
		images[i] = bare.Name
		_, err := s.create(t, build("bare", images))
		denied(t, "an unsigned "+place, err, "unsigned")
	}
	got, err := s.create(t, build("places", [3]string{good, good, good}))
	must(t, err)
	if want, all := env.Pinned(signed), append(images(got), got.Spec.Volumes[0].Image.Reference); slices.ContainsFunc(all, func(i string) bool { return i != want }) || len(all) != 3 {
		t.Errorf("images %v, want %s each", all, want)
	}
	var kept map[string]string
	err = json.Unmarshal([]byte(got.Annotations[written]), &kept)
	if err != nil || len(kept) != 3 || kept["c0"] != good || kept["init"] != good || kept["volume/data"] != good {
		t.Errorf("the original is kept as %q", got.Annotations[written])
	}
}

// tryLabel: an update of another field costs no request, even if the image's tag and cache
// are gone.
func (s *scene) tryLabel(t *testing.T, signed gatetest.Image) {
	got, err := s.create(t, pod("label", signed.Name))
	must(t, err)
	told := func() (mutating, validating int) {
		return len(s.verdicts(t, "mutate", "label")), len(s.verdicts(t, "validate", "label"))
	}
	mutating, validating := told()
	s.cost()
	got.Labels = map[string]string{"team": "blue"}
	changed, err := s.client.CoreV1().Pods(s.namespace).Update(t.Context(), got, meta.UpdateOptions{})
	must(t, err)
	if n := s.cost(); n != 0 {
		t.Errorf("a label cost %d registry requests", n)
	}
	if m, v := told(); validating != 1 || m != mutating || v != validating {
		t.Errorf("%d and %d verdicts before a label, %d and %d after, want one of the validating endpoint and no other", mutating, validating, m, v)
	}
	if changed.Annotations[written] != got.Annotations[written] || !slices.Equal(images(changed), images(got)) {
		t.Errorf("a label changed the pod to %v", changed)
	}
}

// tryDeleted: an object that is being deleted is not held up, and admits no unsigned image.
func (s *scene) tryDeleted(t *testing.T, signed, next, bare gatetest.Image) {
	pods := s.client.CoreV1().Pods(s.namespace)
	p := pod("deleted", signed.Name)
	p.Finalizers = []string{"e2e.example/hold"}
	_, err := s.create(t, p)
	must(t, err)
	must(t, pods.Delete(t.Context(), "deleted", meta.DeleteOptions{}))
	got, err := pods.Get(t.Context(), "deleted", meta.GetOptions{})
	must(t, err)
	if got.DeletionTimestamp == nil {
		t.Fatal("it is not being deleted")
	}
	got.Labels = map[string]string{"team": "blue"}
	got, err = pods.Update(t.Context(), got, meta.UpdateOptions{})
	must(t, err)

	moved := got.DeepCopy()
	moved.Spec.Containers[0].Image = bare.Name
	_, err = pods.Update(t.Context(), moved, meta.UpdateOptions{})
	denied(t, "an unsigned image on an object that is being deleted", err, "unsigned")
	moved.Spec.Containers[0].Image = next.Name
	got, err = pods.Update(t.Context(), moved, meta.UpdateOptions{})
	must(t, err)
	if !slices.Equal(images(got), []string{env.Pinned(next)}) {
		t.Errorf("a signed image on an object that is being deleted became %v", images(got))
	}
	got.Finalizers = nil
	if _, err := pods.Update(t.Context(), got, meta.UpdateOptions{}); err != nil {
		t.Errorf("it cannot go: %v", err)
	}
}

// tryForged: whatever annotations say was verified or written, images are looked
// at, at creation and at an update.
func (s *scene) tryForged(t *testing.T, signed, bare gatetest.Image) {
	forged := map[string]string{
		written:                    `{"c0":"` + bare.Name + `"}`,
		"kyverno.io/verify-images": `{"` + bare.ByDigest() + `":"pass","` + bare.Name + `":true}`,
	}
	for _, image := range []string{bare.Name, bare.ByDigest(), env.Pinned(bare)} {
		p := pod("forged", image)
		p.Annotations = forged
		_, err := s.create(t, p)
		denied(t, "a forged annotation for "+image, err, "unsigned")
	}
	p := pod("forged", signed.Name)
	p.Annotations = forged
	got, err := s.create(t, p)
	must(t, err)
	if !slices.Equal(images(got), []string{env.Pinned(signed)}) || got.Annotations[written] != `{"c0":"`+signed.Name+`"}` {
		t.Errorf("with forged annotations a signed image became %v, %s", images(got), got.Annotations[written])
	}
	got.Annotations = forged
	pods := s.client.CoreV1().Pods(s.namespace)
	got, err = pods.Update(t.Context(), got, meta.UpdateOptions{})
	must(t, err)
	got.Spec.Containers[0].Image = bare.Name
	_, err = pods.Update(t.Context(), got, meta.UpdateOptions{})
	denied(t, "an update after the annotation was forged", err, "unsigned")
}
