package admission_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/webhook/admission"
)

// FuzzReview: for any body, the answer is a review with the request's UID or
// an error that it was no review. A patched object can be
// admitted again without a change.
func FuzzReview(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "reviews", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatal("no reviews to begin with")
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	forged := pod("nginx")
	forge(forged, `{"c0":"x"}`)
	f.Add(review(f, "CREATE", forged, nil, nil))
	f.Add(review(f, "UPDATE", pod("nginx"), forged, nil))
	mutate, validate := endpoint(f, admission.Mutate, &forgetful{}), endpoint(f, admission.Validate, &forgetful{})
	policies, err := newPolicies(checker{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, handler := range []http.Handler{mutate, validate, policies} {
			w := post(handler, "/?timeout=30s", body)
			if w.Code == http.StatusBadRequest {
				continue
			}
			a := read(t, w)
			if len(a.Response.Patch) == 0 {
				continue
			}
			var sent struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Request    object `json:"request"`
			}
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Fatalf("the answer is not JSON: %v", err)
			}
			now, ok := sent.Request["object"].(object)
			if !ok {
				t.Fatal("a patch for no object")
			}
			sent.Request["object"] = patched(t, now, a)
			if again := read(t, post(mutate, "/", encode(t, sent))); again.Response.Allowed && len(again.Response.Patch) > 0 {
				t.Errorf("again: %s", again.Response.Patch)
			}
		}
	})
}
