package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/workload"
)

// pair is an endpoint that enforces, as the API server asks it, and its shadow.
type pair struct {
	enforcing []http.Handler
	shadow    http.Handler
	seen      *recorder // of the shadow
}

func newPair(t testing.TB, config admission.Config, with ...setting) pair {
	t.Helper()
	p := pair{seen: &recorder{}}
	var stages []*admission.Handler
	for _, which := range []admission.Endpoint{admission.Mutate, admission.Validate} {
		config.Endpoint = which
		p.enforcing = append(p.enforcing, endpointWith(t, config, with...))
		stage, err := admission.New(completed(t, config, append(slices.Clone(with), withRecorder(p.seen))...))
		if err != nil {
			t.Fatal(err)
		}
		stages = append(stages, stage)
	}
	shadow, err := admission.NewShadow(stages...)
	if err != nil {
		t.Fatal(err)
	}
	p.shadow = shadow
	return p
}

// request is one that may be no review at all.
type request struct {
	method, kind, query string
	body                []byte
	length              int64 // 0: that of the body
}

func (q request) to(handler http.Handler) *httptest.ResponseRecorder {
	method, kind := q.method, q.kind
	if method == "" {
		method = http.MethodPost
	}
	if kind == "" {
		kind = "application/json"
	}
	r := httptest.NewRequest(method, "/?"+q.query, strings.NewReader(string(q.body)))
	if q.length != 0 {
		r.ContentLength = q.length
	}
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// unseen checks the one answer that a shadow has.
func unseen(t testing.TB, reason, uid string, w *httptest.ResponseRecorder) {
	t.Helper()
	want := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"` + uid + `","allowed":true}}`
	if w.Code != http.StatusOK || w.Body.String() != want || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%s: the shadow answers HTTP %d %s, want %s", reason, w.Code, w.Body, want)
	}
}

// refuses reports whether an endpoint stops the request, by an answer or by none.
func refuses(w *httptest.ResponseRecorder) bool {
	var a answer
	return w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &a) != nil || !a.Response.Allowed
}

// changes reports whether an endpoint changes the object or warns.
func changes(w *httptest.ResponseRecorder) bool {
	var a answer
	return json.Unmarshal(w.Body.Bytes(), &a) == nil && (len(a.Response.Patch) > 0 || len(a.Response.Warnings) > 0)
}

// always returns a decider of one outcome for all.
func always(o gate.Outcome) func(context.Context, gate.Request) gate.Outcome {
	return func(_ context.Context, r gate.Request) gate.Outcome {
		o.Subject = &r.Subject
		return o
	}
}

// TestShadowAdmitsAll: for any decision, and any request, a shadow has one
// answer. Each row has the result of the enforcing endpoints for the same.
func TestShadowAdmitsAll(t *testing.T) {
	reasons := []policy.Reason{{Code: policy.Unsigned, Message: "no signature"}}
	denied := gate.Outcome{Result: gate.Deny, Reasons: reasons}
	unable := gate.Outcome{Result: gate.Error, Reasons: reasons}
	warned := gate.Outcome{Result: gate.Allow, Verdicts: []gate.Verdict{{Result: gate.Allow, Warnings: reasons}}}
	labelled := gate.Outcome{Result: gate.Allow, Mutations: 1, Patch: []workload.Operation{{Op: "add", Path: "/metadata/labels", Value: map[string]any{"a": "b"}}}}
	panics := func(context.Context, gate.Request) gate.Outcome { panic("s3cret") }
	hangs := func(context.Context, gate.Request) gate.Outcome {
		<-t.Context().Done()
		return gate.Outcome{Result: gate.Allow}
	}
	waits := func(ctx context.Context, r gate.Request) gate.Outcome {
		defer waittime.Begin(ctx)()
		return hangs(ctx, r)
	}
	create := review(t, "CREATE", pod("nginx"), nil, nil)
	good := string(create)
	const front = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","object":`
	many := pod("nginx")
	many["spec"].(object)["tolerations"] = json.RawMessage("[" + strings.TrimSuffix(strings.Repeat("{},", 900_000), ",") + "]")
	for name, row := range map[string]struct {
		answer           func(context.Context, gate.Request) gate.Outcome
		request          request
		uid              string
		open             bool // failurePolicy Ignore
		refused, changed bool
	}{
		"allowed, and pinned":        {request: request{body: create}, uid: "u-1", changed: true},
		"denied":                     {answer: always(denied), request: request{body: create}, uid: "u-1", refused: true},
		"not verified":               {answer: always(unable), request: request{body: create}, uid: "u-1", refused: true},
		"warned":                     {answer: always(warned), request: request{body: create}, uid: "u-1", changed: true},
		"changed by a rule":          {answer: always(labelled), request: request{body: create}, uid: "u-1", changed: true},
		"an update that is denied":   {answer: always(denied), request: request{body: review(t, "UPDATE", pod("redis"), pod("nginx"), nil)}, uid: "u-1", refused: true},
		"an ephemeral container":     {answer: always(denied), request: request{body: review(t, "UPDATE", pod("nginx", "sh"), pod("nginx"), func(r object) { r["subResource"] = "ephemeralcontainers" })}, uid: "u-1", refused: true},
		"a dry run":                  {answer: always(denied), request: request{body: review(t, "CREATE", pod("nginx"), nil, func(r object) { r["dryRun"] = true })}, uid: "u-1", refused: true},
		"a deletion":                 {answer: always(denied), request: request{body: review(t, "DELETE", nil, pod("nginx"), nil)}, uid: "u-1"},
		"a panic":                    {answer: panics, request: request{body: create}, uid: "u-1", refused: true},
		"a panic, failing open":      {answer: panics, request: request{body: create}, uid: "u-1", open: true, refused: true},
		"no answer, failing open":    {answer: waits, request: request{body: create, query: "timeout=100ms"}, uid: "u-1", open: true, changed: true}, // a warning
		"no answer in time":          {answer: hangs, request: request{body: create, query: "timeout=100ms"}, uid: "u-1", refused: true},
		"GET":                        {request: request{method: http.MethodGet, body: create}, refused: true},
		"YAML":                       {request: request{kind: "application/yaml", body: create}, refused: true},
		"nonsense for a timeout":     {request: request{query: "timeout=soon", body: create}, refused: true},
		"nothing":                    {request: request{}, refused: true},
		"no JSON":                    {request: request{body: []byte("hello")}, refused: true},
		"a list":                     {request: request{body: []byte("[]")}, refused: true},
		"half of it":                 {request: request{body: create[:len(create)/2]}, refused: true},
		"two of them":                {request: request{body: append(slices.Clone(create), create...)}, uid: "u-1", refused: true},
		"not UTF-8":                  {request: request{body: []byte(strings.Replace(good, "jane", "jan\xff", 1))}, uid: "u-1", refused: true},
		"no uid":                     {request: request{body: []byte(strings.Replace(good, `"uid":"u-1"`, `"x":"u-1"`, 1))}, refused: true},
		"another version":            {request: request{body: []byte(strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1))}, uid: "u-1", refused: true},
		"another namespace":          {request: request{body: review(t, "CREATE", pod("nginx"), nil, func(r object) { r["namespace"] = "bank" })}, uid: "u-1", refused: true},
		"no operation":               {request: request{body: review(t, "MERGE", pod("nginx"), nil, nil)}, uid: "u-1", refused: true},
		"too large":                  {request: request{body: []byte(front + strings.Repeat(" ", admission.MaxBody) + "{}}}")}, uid: "u-1", refused: true},
		"too large, without length":  {request: request{body: []byte(front + strings.Repeat(" ", admission.MaxBody) + "{}}}"), length: -1}, uid: "u-1", refused: true},
		"too many values":            {request: request{body: review(t, "CREATE", many, nil, nil)}, uid: "u-1", refused: true},
		"too deep":                   {request: request{body: []byte(front + strings.Repeat(`{"a":`, 11_000))}, uid: "u-1", refused: true},
		"a name that stands twice":   {request: request{body: []byte(front + `{"apiVersion":"v1","kind":"Pod","kind":"Pod"},"operation":"CREATE","kind":{"version":"v1","kind":"Pod"}}}`)}, uid: "u-1", refused: true},
		"an image that is no name":   {request: request{body: review(t, "CREATE", pod("::"), nil, nil)}, uid: "u-1", refused: true},
		"a uid with quotes and more": {answer: always(denied), request: request{body: review(t, "CREATE", pod("nginx"), nil, func(r object) { r["uid"] = "a\"}" })}, uid: `a\"}`, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, admission.Config{Decider: &pinner{answer: row.answer}, Namespaces: shop, Failure: failure(row.open)})
			var refused, changed bool
			for _, endpoint := range p.enforcing {
				w := row.request.to(endpoint)
				refused, changed = refused || refuses(w), changed || changes(w)
			}
			if refused != row.refused || !refused && changed != row.changed {
				t.Errorf("the twin: refused %v, changed or warned %v", refused, changed)
			}
			unseen(t, name, row.uid, row.request.to(p.shadow))
			last := p.seen.Last(t)
			if !last.Shadow || last.Allowed == row.refused {
				t.Errorf("recorded %+v", last)
			}
		})
	}
}

// TestShadowWithoutRoom: no request waits in vain for a turn, or for memory.
func TestShadowWithoutRoom(t *testing.T) {
	body := review(t, "CREATE", pod("nginx"), nil, nil)
	full, err := admission.NewQueue(admission.QueueBounds{Requests: 1, Bytes: admission.MaxBody})
	if err != nil {
		t.Fatal(err)
	}
	for reason, fill := range map[string]func() func(){
		"as many requests at work as may be": func() func() {
			leave, err := full.Enter(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			return leave
		},
		"no memory for a body": func() func() {
			release, err := full.Reserve(t.Context(), "192.0.2.1:1", admission.MaxBody)
			if err != nil {
				t.Fatal(err)
			}
			return release
		},
	} {
		release := fill()
		p := newPair(t, admission.Config{Decider: &pinner{}, Namespaces: shop, Failure: failure(false)}, withQueue(full))
		if w := post(p.enforcing[1], within, body); !refuses(w) {
			t.Errorf("%s: the twin admits: %s", reason, w.Body)
		}
		unseen(t, reason, "u-1", post(p.shadow, within, body))
		if last := p.seen.Last(t); last.Cause != admission.QueueFull || last.Allowed || !last.Shadow {
			t.Errorf("%s: recorded %+v", reason, last)
		}
		release()
		if w := post(p.enforcing[1], "/", body); refuses(w) {
			t.Errorf("%s, once there is room: %s", reason, w.Body)
		}
	}
}

// TestShadowBetweenBrokenParts: every dependency of an endpoint panics.
func TestShadowBetweenBrokenParts(t *testing.T) {
	config := admission.Config{Endpoint: admission.Mutate, Decider: &pinner{}, Namespaces: broken{}, Failure: broken{}}
	stage, err := admission.New(completed(t, config, withRecorder(broken{})))
	if err != nil {
		t.Fatal(err)
	}
	shadow, err := admission.NewShadow(stage)
	if err != nil {
		t.Fatal(err)
	}
	body := review(t, "CREATE", pod("nginx"), nil, nil)
	if w := post(stage, "/", body); !refuses(w) {
		t.Errorf("the twin admits: %s", w.Body)
	}
	unseen(t, "all panic", "u-1", post(shadow, "/", body))
	r := httptest.NewRequest(http.MethodPost, "/", panickingBody{})
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	shadow.ServeHTTP(w, r)
	unseen(t, "a panic before anything is known", "", w)
}

// panickingBody panics when it is read.
type panickingBody struct{}

func (panickingBody) Read([]byte) (int, error) { panic(io.ErrUnexpectedEOF) }

// TestShadowFollows: the validating shadow gets the object as the mutating one would have
// changed it, and each records its own result.
func TestShadowFollows(t *testing.T) {
	for _, row := range []struct {
		reason   string
		answer   func(context.Context, gate.Request) gate.Outcome
		object   object
		recorded []string // endpoint cause allowed
		seen     string   // the image in the last request to the gate
	}{
		{"an image that the first one pins is pinned for the second", nil, pod("nginx"), []string{"mutate decided true", "validate decided true"}, pinned("nginx")},
		{"a denied object does not reach the second", always(gate.Outcome{Result: gate.Deny}), pod("nginx"), []string{"mutate decided false"}, "nginx"},
		{"an object that is not pinned stays as it is", nil, object{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "web", "namespace": "shop"},
			"spec": object{"template": object{"spec": object{"containers": []any{object{"name": "c0", "image": "nginx"}}}}},
		}, []string{"validate decided true"}, "nginx"},
		{"denied by the second alone", func(_ context.Context, r gate.Request) gate.Outcome {
			if r.Stage == gate.StageValidate {
				return gate.Outcome{Result: gate.Deny}
			}
			return pin(r)
		}, pod("nginx"), []string{"mutate decided true", "validate decided false"}, pinned("nginx")},
		{"a panic at the first one", func(context.Context, gate.Request) gate.Outcome { panic("x") }, pod("nginx"), []string{"mutate panic false"}, "nginx"},
	} {
		decider := &pinner{answer: row.answer}
		p := newPair(t, admission.Config{Decider: decider, Namespaces: shop, Failure: failure(false)})
		unseen(t, row.reason, "u-1", post(p.shadow, "/", review(t, "CREATE", row.object, nil, nil)))
		var recorded []string
		for _, r := range p.seen.All() {
			if !r.Shadow {
				t.Errorf("%s: %s does not say that it is a shadow", row.reason, r.Endpoint)
			}
			recorded = append(recorded, fmt.Sprint(r.Endpoint, " ", r.Cause, " ", r.Allowed))
		}
		if !slices.Equal(recorded, row.recorded) {
			t.Errorf("%s: recorded %q, want %q", row.reason, recorded, row.recorded)
		}
		asked := decider.asked()
		uses, err := workload.Extract(asked[len(asked)-1].Object)
		if err != nil || uses[0].Image != row.seen {
			t.Errorf("%s: the last one saw %v, want %s: %v", row.reason, uses, row.seen, err)
		}
	}
}

// TestPolicyShadow: the author of a broken policy is warned; other requests cause no warning.
func TestPolicyShadow(t *testing.T) {
	broken := object{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": object{"name": "p"}, "spec": object{}}
	seen := &recorder{}
	made := func(err error) (*admission.PolicyHandler, http.Handler) {
		endpoint, err := newPolicies(judging{err}, func(c *admission.PolicyConfig) { c.Recorder = seen })
		if err != nil {
			t.Fatal(err)
		}
		shadow, err := admission.NewPolicyShadow(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		return endpoint, shadow
	}
	body := review(t, "CREATE", broken, nil, nil)
	endpoint, shadow := made(errors.New("spec.rules: nothing is there"))
	if a := send(t, endpoint, body); a.Response.Allowed {
		t.Errorf("the twin: %+v", a.Response)
	}
	a := send(t, shadow, body)
	if !a.Response.Allowed || len(a.Response.Warnings) != 1 || !strings.Contains(a.Response.Warnings[0], "spec.rules: nothing is there") {
		t.Errorf("%+v", a.Response)
	}
	if last := seen.Last(t); !last.Shadow || last.Allowed || last.Endpoint != admission.Policies {
		t.Errorf("recorded %+v", last)
	}
	for reason, body := range map[string][]byte{"no review": []byte("{"), "no object": []byte(strings.Replace(string(body), `"spec":{}`, `"spec":{},"spec":{}`, 1))} {
		if w := post(endpoint, "/", body); !refuses(w) {
			t.Errorf("%s: the twin admits", reason)
		}
		if w := post(shadow, "/", body); refuses(w) || changes(w) {
			t.Errorf("%s: %s", reason, w.Body)
		}
	}
	_, shadow = made(nil)
	unseen(t, "one that compiles", "u-1", post(shadow, "/", body))
}

// judging is a Checker with one result.
type judging struct{ err error }

func (j judging) Check([]byte) error     { return j.err }
func (judging) Warnings([]byte) []string { return nil }

// TestShadowWithoutEndpoints: without endpoints everything is admitted.
func TestShadowWithoutEndpoints(t *testing.T) {
	shadow, err := admission.NewShadow()
	if err != nil {
		t.Fatal(err)
	}
	unseen(t, "no endpoints", "u-1", post(shadow, "/", review(t, "CREATE", pod("evil"), nil, nil)))
	if _, err := admission.NewShadow(nil); err == nil {
		t.Error("a shadow of no endpoint is made")
	}
	if _, err := admission.NewPolicyShadow(nil); err == nil {
		t.Error("a shadow of no endpoint for policies is made")
	}
}

// FuzzShadow: whatever comes, the answer admits and changes nothing.
func FuzzShadow(f *testing.F) {
	p := newPair(f, admission.Config{Decider: &pinner{}, Namespaces: shop, Failure: failure(false)})
	f.Add(review(f, "CREATE", pod("nginx", "evil"), nil, nil))
	f.Add(review(f, "UPDATE", pod("redis"), pod("nginx"), nil))
	f.Add([]byte(`{"request":{"uid":"u"`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if w := post(p.shadow, "/", body); refuses(w) || changes(w) {
			t.Errorf("HTTP %d %s", w.Code, w.Body)
		}
	})
}
