package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// within is a short timeout. Less the margin, 80 ms of it
// remain.
const within = "/?timeout=100ms"

func TestUndecidedRequests(t *testing.T) {
	deleting := func(images ...string) object {
		return with(t, pod(images...), func(o object) { o["metadata"].(object)["deletionTimestamp"] = "2026-11-21T03:30:01Z" })
	}
	panics := func(context.Context, gate.Request) gate.Outcome { panic("s3cret") }
	hangs := func(ctx context.Context, _ gate.Request) gate.Outcome {
		<-t.Context().Done()
		return gate.Outcome{Result: gate.Allow}
	}
	waits := func(ctx context.Context, r gate.Request) gate.Outcome {
		defer waittime.Begin(ctx)()
		return hangs(ctx, r)
	}
	for name, row := range map[string]struct {
		reason   string
		answer   func(context.Context, gate.Request) gate.Outcome
		op       string
		now, old object
		open     bool
		cause    admission.Cause
		allowed  bool
	}{
		"decided":              {"the twin of all", nil, "CREATE", pod("nginx"), nil, false, admission.Decided, true},
		"panic, closed":        {"the default", panics, "CREATE", pod("nginx"), nil, false, admission.Panicked, false},
		"panic, open":          {"an author may trigger a defect", panics, "CREATE", pod("nginx"), nil, true, admission.Panicked, false},
		"hangs, closed":        {"the default", hangs, "CREATE", pod("nginx"), nil, false, admission.TimedOut, false},
		"waits, open":          {"all policies fail open", waits, "CREATE", pod("nginx"), nil, true, admission.TimedOut, true},
		"waits, closed":        {"the default", waits, "CREATE", pod("nginx"), nil, false, admission.TimedOut, false},
		"works, open":          {"the author controls the amount of work", hangs, "CREATE", pod("nginx"), nil, true, admission.TimedOut, false},
		"panic, deleting":      {"a running image may go", panics, "UPDATE", deleting("nginx"), pod("nginx"), false, admission.Panicked, true},
		"panic, deleting, new": {"a new image is not admitted", panics, "UPDATE", deleting("redis"), pod("nginx"), false, admission.Panicked, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &recorder{}
			handler := endpointWith(t, admission.Config{
				Endpoint: admission.Validate, Decider: &pinner{answer: row.answer}, Namespaces: shop, Failure: failure(row.open),
			}, withRecorder(seen))
			target := "/"
			if row.cause == admission.TimedOut {
				target = within
			}
			a := read(t, post(handler, target, review(t, row.op, row.now, row.old, nil)))
			got := seen.Last(t)
			if a.Response.Allowed != row.allowed || a.Response.UID != "u-1" || got.Cause != row.cause || got.Allowed != row.allowed {
				t.Errorf("%s: %+v, recorded %+v", row.reason, a.Response, got)
			}
			message := a.Response.Status.Message + strings.Join(a.Response.Warnings, "")
			if row.cause != admission.Decided && (!strings.Contains(message, "could not be verified") || got.Err == nil) {
				t.Errorf("%s: %q, recorded %v", row.reason, message, got.Err)
			}
			if strings.Contains(message, "s3cret") {
				t.Errorf("the client got the value of the panic: %s", message)
			}
		})
	}
}

func TestTheDeciderAnswersForItsOwnDeadline(t *testing.T) {
	decider := &pinner{answer: func(ctx context.Context, _ gate.Request) gate.Outcome {
		deadline, ok := ctx.Deadline()
		if left := time.Until(deadline); !ok || left > 80*time.Millisecond {
			t.Errorf("%s left of a timeout of 100 ms: nothing for the way back", left)
		}
		<-ctx.Done()
		return gate.Outcome{Result: gate.Error, Reasons: []policy.Reason{{Code: policy.TimedOut, Message: "after 3 of 5 images"}}}
	}}
	a := read(t, post(endpoint(t, admission.Validate, decider), within, review(t, "CREATE", pod("nginx"), nil, nil)))
	if a.Response.Allowed || !strings.Contains(a.Response.Status.Message, "after 3 of 5 images") {
		t.Errorf("%+v", a.Response)
	}
}

func TestBudget(t *testing.T) {
	for target, row := range map[string]struct{ least, most time.Duration }{
		"/":             {5 * time.Second, 9 * time.Second},
		"/?timeout=30s": {25 * time.Second, 29 * time.Second},
		"/?timeout=1s":  {time.Millisecond, 800 * time.Millisecond},
	} {
		var left time.Duration
		decider := &pinner{answer: func(ctx context.Context, r gate.Request) gate.Outcome {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			return pin(r)
		}}
		read(t, post(endpoint(t, admission.Validate, decider), target, review(t, "CREATE", pod("nginx"), nil, nil)))
		if left < row.least || left > row.most {
			t.Errorf("%s: %s left, want %s to %s", target, left, row.least, row.most)
		}
	}
}

func TestFullQueue(t *testing.T) {
	queue, err := admission.NewQueue(admission.QueueBounds{Requests: 1})
	if err != nil {
		t.Fatal(err)
	}
	begun, end := make(chan struct{}), make(chan struct{})
	slow := &pinner{answer: func(_ context.Context, r gate.Request) gate.Outcome {
		close(begun)
		<-end
		return pin(r)
	}}
	first := make(chan *httptest.ResponseRecorder)
	body := review(t, "CREATE", pod("nginx"), nil, nil)
	go func() { first <- post(endpoint(t, admission.Mutate, slow, withQueue(queue)), "/", body) }()
	<-begun
	for _, open := range []bool{false, true} {
		seen := &recorder{}
		handler := endpointWith(t, admission.Config{Endpoint: admission.Validate, Decider: &pinner{}, Namespaces: shop, Failure: failure(open)},
			withQueue(queue), withRecorder(seen))
		a := read(t, post(handler, within, body))
		if a.Response.Allowed != open || a.Response.UID != "u-1" || seen.Last(t).Cause != admission.QueueFull {
			t.Errorf("open %v: %+v", open, a.Response)
		}
	}
	handler := endpoint(t, admission.Validate, &pinner{}, withQueue(queue))
	if a := read(t, post(handler, within, review(t, "DELETE", nil, pod("nginx"), nil))); !a.Response.Allowed {
		t.Errorf("a deletion is evaluated: %+v", a.Response)
	}
	if queue.Working() != 1 || queue.Waiting() != 0 {
		t.Errorf("%d at work, %d waiting", queue.Working(), queue.Waiting())
	}
	close(end)
	if a := read(t, <-first); !a.Response.Allowed {
		t.Errorf("the one at work: %+v", a.Response)
	}
	if a := read(t, post(handler, "/", body)); !a.Response.Allowed || queue.Working() != 0 {
		t.Errorf("once there is room: %+v, %d at work", a.Response, queue.Working())
	}
}

func TestNoRoomForABody(t *testing.T) {
	queue, err := admission.NewQueue(admission.QueueBounds{Bytes: admission.MaxBody})
	if err != nil {
		t.Fatal(err)
	}
	body := review(t, "CREATE", pod("nginx"), nil, nil)
	reader, writer := io.Pipe()
	first := make(chan *httptest.ResponseRecorder)
	go func() { // of unknown length, so it takes all the room that there is
		r := httptest.NewRequest(http.MethodPost, "/", reader)
		r.ContentLength = -1
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		endpoint(t, admission.Mutate, &pinner{}, withQueue(queue)).ServeHTTP(w, r)
		first <- w
	}()
	if _, err := writer.Write(body[:10]); err != nil {
		t.Fatal(err)
	}
	handler := endpoint(t, admission.Validate, &pinner{}, withQueue(queue))
	if a := read(t, post(handler, within, body)); a.Response.Allowed || a.Response.UID == "" || !strings.Contains(a.Response.Status.Message, "could not be verified") {
		t.Errorf("without room: %+v", a.Response)
	}
	if _, err := io.Copy(writer, bytes.NewReader(body[10:])); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	if a := read(t, <-first); !a.Response.Allowed {
		t.Errorf("the first: %+v", a.Response)
	}
	if a := read(t, post(handler, "/", body)); !a.Response.Allowed {
		t.Errorf("once there is room: %+v", a.Response)
	}
}

// broken panics wherever it is asked.
type broken struct{}

func (broken) Labels(context.Context, string) (map[string]string, error) { panic("labels") }
func (broken) FailOpen(*policy.Subject) bool                             { panic("failure") }
func (broken) Record(context.Context, admission.Review)                  { panic("record") }
func (broken) Check([]byte) error                                        { panic("check") }
func (broken) Warnings([]byte) []string                                  { panic("warnings") }

func TestPanicsOfDependenciesAreContained(t *testing.T) {
	handler := endpointWith(t, admission.Config{Endpoint: admission.Validate, Decider: &pinner{}, Namespaces: broken{}, Failure: broken{}}, withRecorder(broken{}))
	if a := send(t, handler, review(t, "CREATE", pod("nginx"), nil, nil)); a.Response.Allowed {
		t.Errorf("%+v", a.Response)
	}
	if a := send(t, handler, review(t, "DELETE", nil, pod("nginx"), nil)); !a.Response.Allowed {
		t.Errorf("a request without dependencies: %+v", a.Response)
	}
}

// TestTooLargeObjects: the author of an object that cannot be read must not leave the
// answer to the webhook's failure policy.
func TestTooLargeObjects(t *testing.T) {
	padded := func(padding string) []byte {
		p := pod("nginx")
		p["spec"].(object)["tolerations"] = json.RawMessage("[" + padding + "]")
		return review(t, "CREATE", p, nil, nil)
	}
	// As an API server writes it, with the UID at the front.
	const front = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","object":`
	list := func(of string, n int) string { return strings.TrimSuffix(strings.Repeat(of+",", n), ",") }
	for name, row := range map[string]struct {
		reason  string
		body    []byte
		allowed bool
		want    string
	}{
		"many tolerations":     {"more than in practice", padded(list("{}", 2_000)), true, ""},
		"a million of them":    {"some megabytes become hundreds", padded(list("{}", 900_000)), false, "too many values"},
		"a long text":          {"one value", padded(`"` + strings.Repeat("x", 3<<20) + `"`), true, ""},
		"more than a body has": {"escapes grow on the way", []byte(front + strings.Repeat(" ", admission.MaxBody) + `{}}}`), false, "MaxBody"},
		"deeper than a parser": {"the reader gives up", []byte(front + strings.Repeat(`{"a":`, 11_000)), false, "depth"},
	} {
		for _, which := range []admission.Endpoint{admission.Mutate, admission.Validate} {
			handler := endpointWith(t, admission.Config{Endpoint: which, Decider: &pinner{}, Namespaces: namespaces{}, Failure: failure(true)})
			a := read(t, post(handler, "/", row.body))
			if a.Response.Allowed != row.allowed || a.Response.UID == "" || !strings.Contains(a.Response.Status.Message, row.want) {
				t.Errorf("%s, %s (%s): %+v", name, which, row.reason, a.Response)
			}
		}
	}
}
