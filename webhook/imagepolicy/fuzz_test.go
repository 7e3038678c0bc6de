package imagepolicy_test

import (
	"encoding/json"
	"testing"

	"k8s.io/api/imagepolicy/v1alpha1"
)

// FuzzReview: for any body, the answer keeps the contract, and an
// allowed request is a review with images that were all sent to the gate.
func FuzzReview(f *testing.F) {
	f.Add(review(f, "shop", "nginx:1", "registry.example/a@sha256:0"))
	f.Add([]byte(`{"apiVersion":"imagepolicy.k8s.io/v1alpha1","kind":"ImageReview","spec":{"containers":[{"image":"a"},{"image":"\n"}],"namespace":"shop"}}`))
	f.Add([]byte(`{"apiVersion":"imagepolicy.k8s.io/v1alpha1","kind":"ImageReview","spec":null}`))
	kept := &recorder{}
	handler := endpoint(f, decide(allow), withRecorder(kept))
	f.Fuzz(func(t *testing.T, body []byte) {
		*kept = recorder{}
		if !read(t, post(handler, body)).Allowed {
			return
		}
		var sent v1alpha1.ImageReview
		if err := json.Unmarshal(body, &sent); err != nil {
			return // stricter than we where it does not matter
		}
		recorded := kept.Last(t)
		if len(sent.Spec.Containers) != len(recorded.Images) || sent.Spec.Namespace != recorded.Namespace {
			t.Fatalf("sent %+v, asked %+v", sent.Spec, recorded)
		}
		for i, container := range sent.Spec.Containers {
			if container.Image != recorded.Images[i] {
				t.Errorf("sent %q, asked %q", container.Image, recorded.Images[i])
			}
		}
	})
}
