package admission_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// sample is what must become of a request, by the name of its file. The same
// names are in the samples that an API server of version 1.36 sent, which name
// other images.
var samples = map[string]struct {
	mutate, validate bool         // is the gate asked?
	pinning          gate.Pinning // at the validating endpoint
	replaced         int          // images
	note             bool
}{
	"pod-create":                     {true, true, gate.PinDone, 3, true},
	"pod-create-dryrun":              {true, true, gate.PinDone, 3, true},
	"pod-update-label":               {true, true, gate.PinDone, 0, false},
	"pod-update-image":               {true, true, gate.PinDone, 1, true},
	"pod-update-ephemeralcontainers": {true, true, gate.PinDone, 1, false},
	"pod-delete":                     {},
	"deployment-create":              {false, true, gate.PinLater, 0, false},
	"deployment-delete":              {},
	"cronjob-create":                 {false, true, gate.PinLater, 0, false},
}

func TestReviewsOfOurOwn(t *testing.T) { testReviews(t, filepath.Join("testdata", "reviews")) }

// TestSamples runs what an API server sent, where it is at hand.
func TestSamples(t *testing.T) {
	folder := os.Getenv("QUAYMASTER_SAMPLES")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "samples")
	}
	folder = filepath.Join(folder, "admission-reviews")
	if _, err := os.Stat(folder); err != nil {
		t.Skip("no samples; set QUAYMASTER_SAMPLES to their folder")
	}
	testReviews(t, folder)
}

func testReviews(t *testing.T, folder string) {
	for name, want := range samples {
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(folder, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var sent struct {
				Request struct {
					UID, Namespace string
					Object         object
					DryRun         bool
				}
			}
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Fatal(err)
			}
			for which, asked := range map[admission.Endpoint]bool{admission.Mutate: want.mutate, admission.Validate: want.validate} {
				decider, seen := &pinner{}, &recorder{}
				handler := endpointWith(t, admission.Config{
					Endpoint: which, Decider: decider, Failure: failure(false), Namespaces: namespaces{sent.Request.Namespace: nil},
				}, withRecorder(seen))
				a := send(t, handler, body)
				if !a.Response.Allowed || a.Response.UID != sent.Request.UID {
					t.Fatalf("%s: %+v", which, a.Response)
				}
				requests := decider.asked()
				if len(requests) > 0 != asked || seen.Last(t).DryRun != sent.Request.DryRun {
					t.Errorf("%s: asked %+v", which, requests)
				}
				if which == admission.Validate {
					if asked && requests[0].Pinning != want.pinning {
						t.Errorf("pinning %q, want %q", requests[0].Pinning, want.pinning)
					}
					continue
				}
				stored := patched(t, sent.Request.Object, a)
				if sent.Request.Object == nil {
					continue
				}
				before, replaced := texts(t, sent.Request.Object), 0
				for container, text := range texts(t, stored) {
					if text != before[container] {
						replaced++
						if text != pinned(before[container]) {
							t.Errorf("%s became %s", before[container], text)
						}
					}
				}
				if replaced != want.replaced || (written(stored) != "") != want.note {
					t.Errorf("%d images replaced, want %d; written %q", replaced, want.replaced, written(stored))
				}
			}
		})
	}
}
