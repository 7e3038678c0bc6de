package imagepolicy_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/imagepolicy"
)

// TestUndecided holds that silence is a denial unless the policies admit it.
func TestUndecided(t *testing.T) {
	busy := decide(func(ctx context.Context, _ gate.Request) gate.Outcome {
		<-ctx.Done()
		<-time.After(time.Minute) // longer than any timeout
		return gate.Outcome{Result: gate.Allow}
	})
	silent := decide(func(ctx context.Context, r gate.Request) gate.Outcome {
		defer waittime.Begin(ctx)()
		return busy(ctx, r)
	})
	broken := decide(func(context.Context, gate.Request) gate.Outcome { panic("broken") })
	for _, c := range []struct {
		config imagepolicy.Config
		cause  imagepolicy.Cause
		opens  bool // where all policies admit silence
		says   string
		reason string
	}{
		{imagepolicy.Config{Decider: decide(allow), Queue: queue{Full: true}}, imagepolicy.QueueFull, true, "limit of concurrent requests", "no turn"},
		{imagepolicy.Config{Decider: decide(allow), Queue: shared{}}, imagepolicy.ShareTaken, false, "the namespace has reached its share", "no turn for a namespace with its share in use"},
		{imagepolicy.Config{Decider: decide(allow), Queue: queue{Dry: true}}, imagepolicy.QueueFull, true, "limit of concurrent requests", "no memory for the body"},
		{imagepolicy.Config{Decider: silent, Queue: queue{}}, imagepolicy.TimedOut, true, "timed out", "a gate that misses its time"},
		{imagepolicy.Config{Decider: busy, Queue: queue{}}, imagepolicy.TimedOut, false, "timed out", "a gate that spends its time"},
		{imagepolicy.Config{Decider: broken, Queue: queue{}}, imagepolicy.Panicked, false, "internal error", "a gate that panics"},
		{imagepolicy.Config{Decider: decide(allow), Queue: angry{}}, imagepolicy.Panicked, false, "internal error", "a queue that panics"},
	} {
		for _, open := range []bool{false, true} {
			c.config.Namespaces, c.config.Failure = namespaces{"shop": nil}, failure(open)
			kept := &recorder{}
			handler := endpointWith(t, c.config, withRecorder(kept), withTimeout(50*time.Millisecond))
			status := send(t, handler, "shop", "a")
			want := open && c.opens
			if status.Allowed != want || !want && !strings.Contains(status.Reason, c.says) {
				t.Errorf("%s, failing open %t: %+v", c.reason, open, status)
			}
			if recorded := kept.Last(t); recorded.Cause != c.cause || recorded.Err == nil || recorded.Allowed != want {
				t.Errorf("%s, failing open %t: recorded %+v", c.reason, open, recorded)
			}
		}
	}
}

// shared is the gateway's own queue, with the namespace's share in use.
type shared struct{ queue }

func (shared) Enter(ctx context.Context, namespace string) (func(), error) {
	own, err := admission.NewQueue(admission.QueueBounds{Requests: 2})
	if err != nil {
		return nil, err
	}
	if _, err := own.Enter(ctx, namespace); err != nil {
		return nil, err
	}
	return own.Enter(ctx, namespace)
}

// angry is a queue that panics.
type angry struct{ queue }

func (angry) Reserve(context.Context, string, int64) (func(), error) { panic("angry") }

// TestFailureThatFails holds that a setting that cannot be had admits nothing.
func TestFailureThatFails(t *testing.T) {
	config := configOf(decide(allow))
	config.Queue, config.Failure = queue{Full: true}, unset{}
	if status := send(t, endpointWith(t, config), "shop", "a"); status.Allowed {
		t.Error("admitted")
	}
}

type unset struct{}

func (unset) FailOpen(*policy.Subject) bool { panic("unset") }

// TestMalformed: a body that is no review is denied, for any failure policy:
// its author would choose the result otherwise.
func TestMalformed(t *testing.T) {
	config := configOf(decide(allow))
	config.Failure = failure(true)
	kept := &recorder{}
	handler := endpointWith(t, config, withRecorder(kept))
	const head = `{"apiVersion":"imagepolicy.k8s.io/v1alpha1","kind":"ImageReview",`
	for _, c := range []struct {
		method, media, body, says, reason string
	}{
		{"", "", head + `"spec":{"containers":[{"image":"a"}],"namespace":"shop"}}`, "", "a review"},
		{"", "", head + `"metadata":{"creationTimestamp":null},"spec":{"containers":[{"image":"a"}],"annotations":{"x.image-policy.k8s.io/y":"z"},"namespace":"shop"},"status":{"allowed":false}}`, "", "a review with all its members"},
		{"", "application/json; charset=utf-8", head + `"spec":{"containers":[{"image":"a"}],"namespace":"shop"}}`, "", "a media type with a parameter"},
		{"GET", "", "", "must be POST", "another method"},
		{"", "text/plain", "{}", "application/json", "another media type"},
		{"", "", ``, "read the ImageReview", "nothing"},
		{"", "", `null`, "must be ImageReview", "null"},
		{"", "", `[]`, "read the ImageReview", "a list"},
		{"", "", head + `"spec":{"containers":[{"image":"a"}],"namespace":"shop"}`, "read the ImageReview", "half a review"},
		{"", "", head + `"spec":{"containers":[{"image":"a"}],"namespace":"shop"}} {}`, "read the ImageReview", "something after it"},
		{"", "", `{"apiVersion":"imagepolicy.k8s.io/v1","kind":"ImageReview","spec":{"containers":[{"image":"a"}],"namespace":"shop"}}`, `"imagepolicy.k8s.io/v1"`, "another version"},
		{"", "", `{"apiVersion":"imagepolicy.k8s.io/v1alpha1","kind":"Pod","spec":{"containers":[{"image":"a"}],"namespace":"shop"}}`, `"Pod"`, "another kind"},
		{"", "", head + `"spec":{"containers":[],"namespace":"shop"}}`, "empty or missing", "no container"},
		{"", "", head + `"spec":{"container":[{"image":"a"}],"namespace":"shop"}}`, "empty or missing", "a misspelt list"},
		{"", "", head + `"spec":{"Containers":[{"image":"a"}],"namespace":"shop"}}`, "empty or missing", "a list in another case"},
		{"", "", head + `"spec":{"containers":[{"image":"a"}],"containers":[],"namespace":"shop"}}`, "read the ImageReview", "a list that stands twice"},
		{"", "", head + `"spec":{"containers":[{"image":"a"},{"image":"b","image":"a"}],"namespace":"shop"}}`, "read the ImageReview", "an image that stands twice"},
		{"", "", head + `"spec":{"containers":[{"image":"a"},{}],"namespace":"shop"}}`, "containers[1].image", "a container without image"},
		{"", "", head + `"spec":{"containers":[{"image":1}],"namespace":"shop"}}`, "read the ImageReview", "an image that is a number"},
		{"", "", head + `"spec":{"containers":[{"image":"` + strings.Repeat("a", 1025) + `"}],"namespace":"shop"}}`, "got 1025", "an image that is too long"},
		{"", "", head + `"spec":{"containers":[{"image":"a"}]}}`, "spec.namespace", "no namespace"},
		{"", "", head + `"spec":{"containers":[{"image":"a"}],"namespace":"shop/../kube-system"}}`, "spec.namespace", "not a valid name of a namespace"},
		{"", "", head + `"spec":{"containers":[` + strings.Repeat(`{"image":"a"},`, 1000) + `{"image":"a"}],"namespace":"shop"}}`, "1001 images", "too many images"},
		{"", "", head + strings.Repeat(" ", imagepolicy.MaxBody) + `"spec":{"containers":[{"image":"a"}],"namespace":"shop"}}`, "MaxBody", "a body that is too large"},
	} {
		for _, sized := range []bool{true, false} {
			var body io.Reader = strings.NewReader(c.body)
			if !sized {
				body = io.MultiReader(body)
			}
			r := httptest.NewRequest(http.MethodPost, "/imagereview", body)
			if c.method != "" {
				r.Method = c.method
			}
			r.Header.Set("Content-Type", "application/json")
			if c.media != "" {
				r.Header.Set("Content-Type", c.media)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			status := read(t, w)
			if status.Allowed != (c.says == "") || !strings.Contains(status.Reason, c.says) {
				t.Errorf("%s, sized %t: %+v", c.reason, sized, status)
			}
			want := imagepolicy.Malformed
			if c.says == "" {
				want = imagepolicy.Decided
			}
			if recorded := kept.Last(t); recorded.Cause != want {
				t.Errorf("%s: recorded %s, %v", c.reason, recorded.Cause, recorded.Err)
			}
		}
	}
}

// TestSlowBody holds that a body which does not arrive is not waited for.
func TestSlowBody(t *testing.T) {
	server := httptest.NewServer(endpoint(t, decide(allow), withTimeout(50*time.Millisecond)))
	t.Cleanup(server.Close)
	never, end := io.Pipe()
	t.Cleanup(func() { _ = end.Close() })
	r := testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, never))(t)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body := testkit.Must(io.ReadAll(answer.Body))(t)
	if !bytes.Contains(body, []byte(`"allowed":false`)) {
		t.Errorf("%s", body)
	}
}

func TestNew(t *testing.T) {
	for reason, change := range map[string]func(*imagepolicy.Config){
		"no decider": func(c *imagepolicy.Config) { c.Decider = nil }, "no namespaces": func(c *imagepolicy.Config) { c.Namespaces = nil },
		"no failure setting": func(c *imagepolicy.Config) { c.Failure = nil }, "no queue": func(c *imagepolicy.Config) { c.Queue = nil },
	} {
		config := configOf(decide(allow))
		change(&config)
		if _, err := imagepolicy.New(config); err == nil {
			t.Errorf("%s: want an error", reason)
		}
	}
	for reason, option := range map[string]setting{
		"no recorder": withRecorder(nil), "no time": withTimeout(-time.Second), "more than the API server waits": withTimeout(30 * time.Second),
	} {
		config := configOf(decide(allow))
		option(&config)
		if _, err := imagepolicy.New(config); err == nil {
			t.Errorf("%s: want an error", reason)
		}
	}
}

// TestRecorderThatPanics: the recorder changes no answer.
func TestRecorderThatPanics(t *testing.T) {
	if status := send(t, endpoint(t, decide(allow), withRecorder(upset{})), "shop", "a"); !status.Allowed {
		t.Errorf("%+v", status)
	}
}

type upset struct{}

func (upset) Record(context.Context, imagepolicy.Review) { panic("upset") }

// TestRequest holds the gate's request.
func TestRequest(t *testing.T) {
	var asked gate.Request
	status := send(t, endpoint(t, decide(func(_ context.Context, request gate.Request) gate.Outcome {
		asked = request
		return gate.Outcome{Result: gate.Allow}
	})), "shop", "a", "b")
	s := asked.Subject
	if !status.Allowed || asked.Pinning != gate.PinNever || asked.Anonymous || !s.Bare || s.Kind != "Pod" || s.Namespace != "shop" ||
		!s.NamespaceKnown || s.NamespaceLabels["team"] != "a" || s.NamespaceLabels["kubernetes.io/metadata.name"] != "shop" || s.Time.IsZero() {
		t.Errorf("%+v", asked)
	}
	if asked.Object.Namespace() != "shop" {
		t.Errorf("in %q", asked.Object.Namespace())
	}
}
