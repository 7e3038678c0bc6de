package playground_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/suite/trial"
	"github.com/quaymaster/quaymaster/webhook/playground"
)

var update = flag.Bool("update", false, "write the golden files")

// evaluator is an Evaluator made of a function.
type evaluator func(ctx context.Context, d trial.Documents) (trial.Report, error)

func (e evaluator) Evaluate(ctx context.Context, d trial.Documents) (trial.Report, error) {
	return e(ctx, d)
}

func offline(t testing.TB) playground.Evaluator {
	t.Helper()
	made, err := trial.NewOffline(playground.DefaultTimeout)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func open(t testing.TB, config playground.Config) *playground.Handler {
	t.Helper()
	h, err := playground.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// post sends a request as the page does; a header without a value is left out.
func post(h http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8002/api/v1/evaluate", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://127.0.0.1:8002")
	for n := 0; n+1 < len(headers); n += 2 {
		switch {
		case headers[n] == "Host":
			r.Host = headers[n+1]
		case headers[n] == "Method":
			r.Method = headers[n+1]
		case headers[n+1] == "":
			r.Header.Del(headers[n])
		default:
			r.Header.Set(headers[n], headers[n+1])
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func body(t testing.TB, d trial.Documents) string {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const (
	policy = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: v}\nspec:\n  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n  validations: [{expression: \"EXPRESSION\"}]\n"
	pod    = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, namespace: shop}\nspec: {containers: [{name: c, image: registry.example/web:v1}]}\n"
)

func TestNewRefuses(t *testing.T) {
	for _, row := range []struct {
		reason string
		config playground.Config
	}{
		{"no evaluator", playground.Config{}},
		{"a negative time", playground.Config{Evaluator: offline(t), Timeout: -1}},
	} {
		if _, err := playground.New(row.config); err == nil {
			t.Errorf("%s: made all the same", row.reason)
		}
	}
}

// TestRequests: only the page itself may ask, on loopback, and within bounds.
func TestRequests(t *testing.T) {
	h := open(t, playground.Config{Evaluator: offline(t)})
	good := body(t, trial.Documents{Policies: strings.Replace(policy, "EXPRESSION", "true", 1), Objects: pod})
	comment := func(n int) string {
		return body(t, trial.Documents{Policies: strings.Replace(policy, "EXPRESSION", "true", 1), Objects: pod, Exceptions: "# " + strings.Repeat("a", n)})
	}
	pods := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("---\n" + strings.Replace(pod, "NAME", fmt.Sprint("p", i), 1))
		}
		return body(t, trial.Documents{Policies: strings.Replace(policy, "EXPRESSION", "true", 1), Objects: b.String()})
	}
	for _, row := range []struct {
		reason, body string
		headers      []string
		status       int
		has          string
	}{
		{"the page", good, nil, 200, `"result":"allow"`},
		{"by a name of loopback", good, []string{"Host", "localhost:8002", "Origin", "http://localhost:8002"}, 200, `"result":"allow"`},
		{"a foreign name", good, []string{"Host", "evil.example:8002", "Origin", "http://evil.example:8002"}, 421, "loopback only"},
		{"a foreign origin", good, []string{"Origin", "http://evil.example"}, 403, "foreign-origin"},
		{"another port", good, []string{"Origin", "http://127.0.0.1:8003"}, 403, "foreign-origin"},
		{"an opaque origin", good, []string{"Origin", "null"}, 403, "foreign-origin"},
		{"from another site", good, []string{"Sec-Fetch-Site", "cross-site"}, 403, "foreign-origin"},
		{"from the same origin", good, []string{"Sec-Fetch-Site", "same-origin"}, 200, `"result":"allow"`},
		{"no browser", good, []string{"Origin", ""}, 200, `"result":"allow"`},
		{"GET", good, []string{"Method", "GET"}, 405, "wrong-method"},
		{"PUT", good, []string{"Method", "PUT"}, 405, "wrong-method"},
		{"a form", good, []string{"Content-Type", "text/plain"}, 415, "wrong-type"},
		{"no type", good, []string{"Content-Type", ""}, 415, "wrong-type"},
		{"compressed", good, []string{"Content-Encoding", "gzip"}, 415, "wrong-type"},
		{"no JSON", "{", nil, 400, "malformed"},
		{"an unknown field", `{"policy": ""}`, nil, 400, "malformed"},
		{"another type", `{"policies": 1}`, nil, 400, "malformed"},
		{"a field twice", `{"policies": "", "policies": ""}`, nil, 400, "malformed"},
		{"a large body", comment(playground.MaxBody - 2000), nil, 200, `"result":"allow"`},
		{"too large a body", comment(playground.MaxBody), nil, 413, "too-large"},
		{"many documents", pods(trial.MaxObjects), nil, 200, `"name":"p199"`},
		{"too many documents", pods(trial.MaxObjects + 1), nil, 413, "too-large"},
	} {
		got := post(h, row.body, row.headers...)
		if got.Code != row.status || !strings.Contains(got.Body.String(), row.has) {
			t.Errorf("%s: %d, want %d with %q: %.300s", row.reason, got.Code, row.status, row.has, got.Body)
		}
		if allow := got.Header().Get("Allow"); (allow == "POST") != (row.status == 405) {
			t.Errorf("%s: Allow is %q", row.reason, allow)
		}
	}
}

// TestPages: pages are for reading, and confined to their host.
func TestPages(t *testing.T) {
	h := open(t, playground.Config{Evaluator: offline(t)})
	for _, row := range []struct {
		method, path string
		status       int
		has          string
	}{
		{"GET", "/", 200, "<!doctype html>"},
		{"HEAD", "/", 200, ""},
		{"POST", "/", 405, "wrong-method"},
		{"GET", "/assets/app.css", 200, ":root"},
		{"GET", "/assets/other.css", 404, ""},
		{"GET", "/api/v1/examples", 200, `"kind":"ExampleList"`},
		{"DELETE", "/api/v1/examples", 405, "wrong-method"},
		{"GET", "/api/v1/others", 404, "not-found"},
	} {
		r := httptest.NewRequest(row.method, "http://localhost"+row.path, http.NoBody)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != row.status || !strings.Contains(w.Body.String(), row.has) {
			t.Errorf("%s %s: %d, want %d with %q: %.200s", row.method, row.path, w.Code, row.status, row.has, w.Body)
		}
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, want) || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: no %s in %q", row.path, want, policy)
			}
		}
	}
}

// TestFailures: a panic, the end of the time, a full queue and too large an answer are errors and no results.
func TestFailures(t *testing.T) {
	found := trial.Report{Objects: []trial.Object{{Name: "a", Result: "allow"}}}
	for _, row := range []struct {
		reason   string
		evaluate evaluator
		status   int
		has      string
	}{
		{"a result", func(context.Context, trial.Documents) (trial.Report, error) { return found, nil }, 200, `"result":"allow"`},
		{"a panic", func(context.Context, trial.Documents) (trial.Report, error) { panic("secret") }, 500, "a defect"},
		{"an error", func(context.Context, trial.Documents) (trial.Report, error) { return found, context.DeadlineExceeded }, 504, "timeout"},
		{"one that does not end", func(ctx context.Context, _ trial.Documents) (trial.Report, error) { <-ctx.Done(); return found, nil }, 504, "timeout"},
		{"endless results", func(context.Context, trial.Documents) (trial.Report, error) {
			return trial.Report{Warnings: []string{strings.Repeat("a", 5<<20)}}, nil
		}, 413, "too-large"},
	} {
		h := open(t, playground.Config{Evaluator: row.evaluate, Timeout: 50 * time.Millisecond})
		got := post(h, "{}")
		if got.Code != row.status || !strings.Contains(got.Body.String(), row.has) || row.status != 200 && strings.Contains(got.Body.String(), "allow") || strings.Contains(got.Body.String(), "secret") {
			t.Errorf("%s: %d, want %d with %q: %.200s", row.reason, got.Code, row.status, row.has, got.Body)
		}
	}
}

// TestEndlessExpression: the cost of an expression is bounded as at admission.
func TestEndlessExpression(t *testing.T) {
	h := open(t, playground.Config{Evaluator: offline(t)})
	list := "[" + strings.Repeat("1,", 99) + "1]"
	nested := func(depth int) string {
		text := "true"
		for i := range depth {
			text = fmt.Sprintf("%s.all(v%d, %s)", list, i, text)
		}
		return body(t, trial.Documents{Policies: strings.Replace(policy, "EXPRESSION", text, 1), Objects: pod})
	}
	if got := post(h, nested(1)); !strings.Contains(got.Body.String(), `"result":"allow"`) {
		t.Errorf("a short one: %d: %.300s", got.Code, got.Body)
	}
	if got := post(h, nested(4)); got.Code != 200 || strings.Contains(got.Body.String(), `"result":"allow"`) || !strings.Contains(got.Body.String(), "cost") {
		t.Errorf("an endless one: %d: %.600s", got.Code, got.Body)
	}
}

// TestSeats: an evaluation keeps its seat until it has ended, also after its time, and another caller has
// a seat meanwhile.
func TestSeats(t *testing.T) {
	stuck, begun := make(chan struct{}), make(chan struct{}, 8)
	h := open(t, playground.Config{Timeout: 20 * time.Millisecond, Evaluator: evaluator(func(_ context.Context, d trial.Documents) (trial.Report, error) {
		if d.Policies == "stuck" {
			begun <- struct{}{}
			<-stuck
		}
		return trial.Report{}, nil
	})})
	by := func(caller, body string) int {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/api/v1/evaluate", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.Serve(w, r, caller)
		return w.Code
	}
	if got := by("a", `{"policies": "stuck"}`); got != http.StatusGatewayTimeout {
		t.Fatalf("got %d", got)
	}
	<-begun
	if got := by("a", "{}"); got != http.StatusServiceUnavailable {
		t.Errorf("the caller whose evaluation did not end: %d", got)
	}
	if got := by("b", "{}"); got != http.StatusOK {
		t.Errorf("another caller: %d", got)
	}
	close(stuck)
	if got := by("a", "{}"); got != http.StatusOK {
		t.Errorf("after the end: %d", got)
	}
}

// TestExamples: each example is evaluated without a fault, and its answer is the one of the golden file.
func TestExamples(t *testing.T) {
	h := open(t, playground.Config{Evaluator: offline(t)})
	all, err := playground.Examples()
	if err != nil || len(all) < 4 {
		t.Fatalf("%d examples, %v", len(all), err)
	}
	for _, example := range all {
		t.Run(example.ID, func(t *testing.T) {
			got := post(h, body(t, example.Documents))
			var answer any
			if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil || got.Code != 200 {
				t.Fatalf("%d: %s", got.Code, got.Body)
			}
			text, err := json.MarshalIndent(answer, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := "testdata/" + example.ID + ".json"
			if *update {
				if err := os.WriteFile(golden, append(text, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || string(want) != string(text)+"\n" {
				t.Errorf("%v; the answer is another one:\n%s", err, text)
			}
		})
	}
}

// FuzzDecode: a request is refused, or has the documents of its body.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"{}", `{"policies": "a"}`, `{"policies": "a", "objects": "b", "parameters": "c", "exceptions": "d"}`, `{"policies": null}`, `[]`, `{"objects": "\ud800"}`, `{"a": {}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		documents, err := playground.Decode(text)
		if err != nil {
			if documents != (trial.Documents{}) {
				t.Errorf("an error, and documents: %+v", documents)
			}
			return
		}
		again, err := json.Marshal(documents)
		if err != nil {
			t.Fatal(err)
		}
		if decoded, err := playground.Decode(again); err != nil || decoded != documents {
			t.Errorf("%+v became %+v, %v", documents, decoded, err)
		}
	})
}

func ExampleHandler() {
	offline, err := trial.NewOffline(playground.DefaultTimeout)
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := playground.New(playground.Config{Evaluator: offline})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(h)
	defer server.Close()
	answer, err := http.Post(server.URL+"/api/v1/evaluate", "application/json", strings.NewReader(`{"policies": "", "objects": ""}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	var found playground.Evaluation
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Status, found.Errors[0].Message)
	// Output: 200 OK no policy in it
}
