package admission_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/webhook/admission"
)

// admit sends an object through the mutating endpoint and returns the stored object.
func admit(t testing.TB, handler http.Handler, op string, now, old object) object {
	t.Helper()
	a := send(t, handler, review(t, op, now, old, nil))
	if !a.Response.Allowed {
		t.Fatalf("denied: %s", a.Response.Status.Message)
	}
	return patched(t, now, a)
}

func TestPinAndRecord(t *testing.T) {
	digested := pinned("redis")
	now := pod("nginx:1.27", digested)
	now["spec"].(object)["initContainers"] = []any{object{"name": "init", "image": "busybox"}}
	now["spec"].(object)["volumes"] = []any{object{"name": "init", "image": object{"reference": "llama:3"}}, object{"name": "tmp", "emptyDir": object{}}}
	stored := admit(t, endpoint(t, admission.Mutate, &pinner{}), "CREATE", now, nil)
	want := with(t, now, func(o object) {
		spec := o["spec"].(object)
		spec["containers"].([]any)[0].(object)["image"] = pinned("nginx:1.27")
		spec["initContainers"].([]any)[0].(object)["image"] = pinned("busybox")
		spec["volumes"].([]any)[0].(object)["image"].(object)["reference"] = pinned("llama:3")
		annotate(o, map[string]string{admission.WrittenAnnotation: `{"c0":"nginx:1.27","init":"busybox","volume/init":"llama:3"}`})
	})
	if !reflect.DeepEqual(stored, with(t, want, func(object) {})) {
		t.Errorf("got %s\nwant %s", encode(t, stored), encode(t, want))
	}
}

func TestRecordInEveryShapeOfMetadata(t *testing.T) {
	const message = `{"c0":"nginx"}`
	for name, row := range map[string]struct {
		reason string
		now    object
		want   string
	}{
		"no metadata":    {"a test program's object", with(t, pod("nginx"), func(o object) { delete(o, "metadata") }), message},
		"no annotations": {"the plain case", pod("nginx"), message},
		"null":           {"as good as none", with(t, pod("nginx"), func(o object) { o["metadata"].(object)["annotations"] = nil }), message},
		"others":         {"stay as they are", with(t, pod("nginx"), func(o object) { annotate(o, map[string]string{"a/b~c": "d"}) }), message},
		"forged":         {"it differs from the written value", with(t, pod("nginx"), func(o object) { forge(o, `{"c0":"other"}`) }), message},
		"forged, pinned": {"nothing was written but this", with(t, pod(pinned("nginx")), func(o object) { forge(o, `{"c0":"other"}`) }), ""},
		"no such one":    {"no container has that name", with(t, pod(pinned("nginx")), func(o object) { forge(o, `{"c1":"nginx"}`) }), ""},
		"no JSON":        {"it is no record", with(t, pod(pinned("nginx")), func(o object) { forge(o, `hello`) }), ""},
		"null forged":    {"it is no record", with(t, pod(pinned("nginx")), func(o object) { o["metadata"].(object)["annotations"] = object{admission.WrittenAnnotation: nil} }), ""},
		"otherwise":      {"the same, in the one way to write it", with(t, pod(pinned("nginx")), func(o object) { forge(o, ` { "c0" : "nginx", "x": "y" } `) }), message},
		"true":           {"a second call finds the value of the first", with(t, pod(pinned("nginx")), func(o object) { forge(o, message) }), message},
	} {
		t.Run(name, func(t *testing.T) {
			handler := endpoint(t, admission.Mutate, &pinner{})
			body := review(t, "CREATE", row.now, nil, func(r object) { r["namespace"] = "shop" })
			stored := patched(t, row.now, send(t, handler, body))
			if got := written(stored); got != row.want || texts(t, stored)["c0"] != pinned("nginx") {
				t.Errorf("%s: %s, want annotation %q", row.reason, encode(t, stored), row.want)
			}
			again := send(t, handler, review(t, "CREATE", stored, nil, func(r object) { r["namespace"] = "shop" }))
			if again.Response.Patch != nil {
				t.Errorf("%s: a second call changes %s", row.reason, again.Response.Patch)
			}
		})
	}
}

func forge(o object, text string) { annotate(o, map[string]string{admission.WrittenAnnotation: text}) }

func TestUpdatesRestoreRunningImages(t *testing.T) {
	first := admit(t, endpoint(t, admission.Mutate, &pinner{}), "CREATE", pod("nginx:1", "redis:2"), nil)
	same := func(o object) { forge(o, written(first)) }
	for name, row := range map[string]struct {
		reason   string
		now, old object
		c0       string
		changed  []string // containers that the gate finds changed
		written  string
	}{
		"applied again":     {"by a second manager, without digests", with(t, pod("nginx:1", "redis:2"), same), first, pinned("nginx:1"), nil, `{"c0":"nginx:1","c1":"redis:2"}`},
		"one of them new":   {"the other is put back", with(t, pod("nginx:9", "redis:2"), same), first, pinned("nginx:9"), []string{"c0"}, `{"c0":"nginx:9","c1":"redis:2"}`},
		"without the note":  {"the stored object's record counts, and the image is restored", pod("nginx:1", "redis:2"), first, pinned("nginx:1"), nil, `{"c0":"nginx:1","c1":"redis:2"}`},
		"forged new note":   {"the same", with(t, pod("evil", "redis:2"), func(o object) { forge(o, `{"c0":"evil"}`) }), first, "denied", []string{"c0"}, ""},
		"forged old note":   {"the image that runs is no other than before", pod("evil", "redis:2"), with(t, first, func(o object) { forge(o, `{"c0":"evil"}`) }), "denied", []string{"c0", "c1"}, ""},
		"note of a digest":  {"evil@digest never ran here", pod("evil", "redis:2"), with(t, pod(pinned("other"), pinned("redis:2")), func(o object) { forge(o, `{"c0":"evil","c1":"redis:2"}`) }), "denied", []string{"c0"}, ""},
		"another container": {"what runs there does not run here", pod("redis:2", "redis:2"), with(t, first, func(o object) { forge(o, `{"c0":"redis:2","c1":"redis:2"}`) }), pinned("redis:2"), []string{"c0"}, `{"c0":"redis:2","c1":"redis:2"}`},
		"another role": {"an init container of that name is not it", with(t, pod("nginx:1"), func(o object) {
			o["spec"] = object{"initContainers": o["spec"].(object)["containers"]}
		}), first, pinned("nginx:1"), []string{"c0"}, `{"c0":"nginx:1"}`},
		"stored by tag": {"there is no digest to put back", with(t, pod("nginx:1", "redis:2"), func(o object) { o["metadata"].(object)["labels"] = object{"a": "b"} }), pod("nginx:1", "redis:2"), "nginx:1", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			decider := &pinner{}
			a := send(t, endpoint(t, admission.Mutate, decider), review(t, "UPDATE", row.now, row.old, nil))
			if a.Response.Allowed == (row.c0 == "denied") {
				t.Fatalf("%s: %+v", row.reason, a.Response)
			}
			if a.Response.Allowed {
				stored := patched(t, row.now, a)
				if got := texts(t, stored); got["c0"] != row.c0 {
					t.Errorf("%s: c0 runs %s, want %s", row.reason, got["c0"], row.c0)
				}
				if got := written(stored); got != row.written {
					t.Errorf("%s: written %q, want %q", row.reason, got, row.written)
				}
			}
			request := decider.asked()[0]
			outcome := pin(request)
			var changed []string
			for _, v := range outcome.Verdicts {
				if !v.Image.Unchanged {
					changed = append(changed, v.Image.Container)
				}
			}
			if !reflect.DeepEqual(changed, row.changed) {
				t.Errorf("%s: the gate finds %v changed, want %v", row.reason, changed, row.changed)
			}
		})
	}
}

func TestApplyingAgainGivesAnEmptyDifference(t *testing.T) {
	manifest := pod("nginx:1", "redis:2")
	handler := endpoint(t, admission.Mutate, &pinner{})
	first := admit(t, handler, "CREATE", manifest, nil)
	applied := with(t, first, func(o object) { o["spec"] = manifest["spec"] })
	if second := admit(t, handler, "UPDATE", applied, first); !reflect.DeepEqual(second, with(t, first, func(object) {})) {
		t.Errorf("got %s\nwant %s", encode(t, second), encode(t, first))
	}
}

// TestAdmittingTwice holds for whatever is admitted: the second time changes
// nothing, byte for byte, created anew or updated.
func TestAdmittingTwice(t *testing.T) {
	images := []string{"nginx", "redis:7", pinned("alpine"), pinned("ghcr.io/a/b:1"), "quay.io/a/b"}
	notes := []string{"", `{"c0":"nginx"}`, `{"c0":"alpine","c1":"redis:7"}`, `{"c1":"ghcr.io/a/b:1"}`, `x`, `{"":""}`}
	for i, a := range images {
		for j, b := range images {
			note := notes[(i*len(images)+j)%len(notes)]
			now := pod(a, b)
			if note != "" {
				forge(now, note)
			}
			handler := endpoint(t, admission.Mutate, &pinner{})
			once := admit(t, handler, "CREATE", now, nil)
			twice := admit(t, handler, "CREATE", once, nil)
			updated := admit(t, handler, "UPDATE", with(t, once, func(o object) { o["metadata"].(object)["labels"] = object{"a": "b"} }), once)
			delete(updated["metadata"].(object), "labels")
			for _, again := range []object{twice, updated} {
				if x, y := string(encode(t, once)), string(encode(t, again)); x != y {
					t.Errorf("%s %s %s: first %s\nthen %s", a, b, note, x, y)
				}
			}
			var entries map[string]string
			if text := written(once); text != "" {
				if err := json.Unmarshal([]byte(text), &entries); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range entries {
				if !strings.HasPrefix(texts(t, once)[name], text+"@sha256:") {
					t.Errorf("the note has %s for %s, which runs %s", text, name, texts(t, once)[name])
				}
			}
		}
	}
}
