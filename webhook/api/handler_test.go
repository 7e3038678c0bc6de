package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/api"
)

func TestStatuses(t *testing.T) {
	const good = `{"images": ["registry.test/app:v1"]}`
	token := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", value) }
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, row := range []struct {
		reason string
		body   string
		change func(*http.Request)
		status int
		cause  api.Cause
		header string
	}{
		{"an image that is allowed", good, nil, 200, api.Decided, ""},
		{"an image that is denied is answered, too", `{"images": ["registry.test/bad:v1"]}`, nil, 200, api.Decided, ""},
		{"the media type may have a parameter", good, header("Content-Type", "application/json; charset=utf-8"), 200, api.Decided, ""},
		{"the scheme's case does not matter", good, token("bearer ci-token"), 200, api.Decided, ""},

		{"no token", good, func(r *http.Request) { r.Header.Del("Authorization") }, 401, api.Unauthenticated, "WWW-Authenticate"},
		{"an unknown token", good, token("Bearer other"), 401, api.Unauthenticated, "WWW-Authenticate"},
		{"another scheme", good, token("Basic ci-token"), 401, api.Unauthenticated, "WWW-Authenticate"},
		{"an empty token", good, token("Bearer "), 401, api.Unauthenticated, "WWW-Authenticate"},
		{"a token with a space", good, token("Bearer ci-token x"), 401, api.Unauthenticated, "WWW-Authenticate"},
		{"an endless token", good, token("Bearer " + strings.Repeat("a", 9<<10)), 401, api.Unauthenticated, "WWW-Authenticate"},
		{"two tokens", good, func(r *http.Request) { r.Header.Add("Authorization", "Bearer ci-token") }, 401, api.Unauthenticated, "WWW-Authenticate"},
		{"the token could not be looked up", good, token("Bearer lost-token"), 503, api.Indeterminate, "Retry-After"},
		{"the authenticator falls", good, token("Bearer broken-token"), 500, api.Panicked, ""},
		{"a caller without the right", good, token("Bearer dev-token"), 403, api.Forbidden, ""},

		{"GET", good, func(r *http.Request) { r.Method = http.MethodGet }, 405, api.WrongMethod, "Allow"},
		{"no media type", good, header("Content-Type", ""), 415, api.WrongMediaType, ""},
		{"another media type", good, header("Content-Type", "text/plain"), 415, api.WrongMediaType, ""},
		{"a compressed body", good, header("Content-Encoding", "gzip"), 415, api.WrongMediaType, ""},
		{"a body above the bound", strings.Repeat(" ", api.MaxBody) + good, nil, 413, api.TooLarge, ""},
		{"one that does not say so", strings.Repeat(" ", api.MaxBody) + good, func(r *http.Request) { r.ContentLength = -1 }, 413, api.TooLarge, ""},
		{"a body of a million values", `{"images": [` + strings.Repeat("{},", 300_000) + `{}]}`, nil, 413, api.TooLarge, ""},
		{"too many images", `{"images": [` + strings.Repeat(`"a",`, api.MaxImages) + `"a"]}`, nil, 413, api.TooLarge, ""},
		{"as many as may be", `{"images": [` + strings.Repeat(`"a",`, api.MaxImages-1) + `"a"]}`, nil, 200, api.Decided, ""},
		{"a body that breaks off", good, func(r *http.Request) {
			r.ContentLength = -1
			r.Body = io.NopCloser(iotest.ErrReader(errors.New("reset")))
		}, 400, api.Malformed, ""},
		{"no JSON", "images", nil, 400, api.Malformed, ""},
		{"nothing", "", nil, 400, api.Malformed, ""},
		{"no images", `{}`, nil, 400, api.Malformed, ""},
		{"an empty list", `{"images": []}`, nil, 400, api.Malformed, ""},
		{"a member that is not known", `{"images": ["a"], "force": true}`, nil, 400, api.Malformed, ""},
		{"a member in another case", `{"Images": ["a"]}`, nil, 400, api.Malformed, ""},
		{"a member that stands twice", `{"images": ["a"], "images": ["b"]}`, nil, 400, api.Malformed, ""},
		{"something after the end", good + good, nil, 400, api.Malformed, ""},
		{"an image that is none", `{"images": ["UPPER CASE"]}`, nil, 400, api.Malformed, ""},
		{"a namespace that is none", `{"images": ["a"], "namespace": "../kube-system"}`, nil, 400, api.Malformed, ""},
		{"a query beside images", good, func(r *http.Request) { r.URL.RawQuery = "namespace=shop" }, 400, api.Malformed, ""},
	} {
		t.Run(row.reason, func(t *testing.T) {
			calls := &recorder{}
			w := call(newEndpoint(t, &judge{}, withRecorder(calls), withCallers(nil, []string{"builders"})), row.body, row.change)
			if w.Code != row.status {
				t.Fatalf("HTTP %d, want %d: %s", w.Code, row.status, w.Body)
			}
			recorded := calls.Last(t)
			if len(calls.All()) != 1 || recorded.Cause != row.cause || (recorded.Err != nil) != (row.status != 200) {
				t.Errorf("recorded %+v", recorded)
			}
			if row.status != 200 {
				if e := errorOf(t, w); e.Reason != row.cause || len(e.Message) > 2<<10 {
					t.Errorf("answered %+v", e)
				}
			}
			if row.header != "" && w.Header().Get(row.header) == "" {
				t.Errorf("no header %s", row.header)
			}
			if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("headers %v", w.Header())
			}
			for _, secret := range []string{"ci-token", "dev-token", "lost-token", "10.0.0.1"} {
				if strings.Contains(w.Body.String(), secret) {
					t.Errorf("the answer contains %q: %s", secret, w.Body)
				}
			}
		})
	}
}

func TestImagesAreAskedAbout(t *testing.T) {
	j, calls := &judge{}, &recorder{}
	handler := newEndpoint(t, j, withRecorder(calls), withNamespaces(labels{"shop": {"team": "a"}}))
	list := listOf(t, call(handler, `{"images": ["registry.test/bad:v1", "nginx", "nginx"], "namespace": "shop"}`, nil))
	var answers []gate.Result
	for _, item := range list.Items {
		answers = append(answers, item.Images[0].Result)
	}
	if !slices.Equal(answers, []gate.Result{gate.Deny, gate.Allow, gate.Allow}) || list.Summary.Denied != 1 {
		t.Errorf("answers %v, summary %+v", answers, list.Summary)
	}
	for i, request := range j.requests {
		s := request.Subject
		if !request.Anonymous || !s.Bare || s.Namespace != "shop" || !s.NamespaceKnown || s.NamespaceLabels["team"] != "a" || s.NamespaceLabels["kubernetes.io/metadata.name"] != "shop" {
			t.Errorf("request %d: anonymous %t, %+v", i, request.Anonymous, s)
		}
	}
	if c := calls.Last(t); c.User != "ci" || c.Namespace != "shop" || len(c.Outcomes) != 3 {
		t.Errorf("recorded %+v", c)
	}
}

// mirrored is a gate that gives a pod a pull secret of the mirror it is sent to,
// and lacks another one.
type mirrored struct{}

func (mirrored) DecideAll(context.Context, []gate.Request, func(int, int)) []gate.Outcome {
	return []gate.Outcome{{Result: gate.Allow, Subject: &policy.Subject{}, Verdicts: []gate.Verdict{{
		Result:   gate.Allow,
		Redirect: &gate.Redirect{Mirror: "RegistryMirror/near[0]", PullSecrets: []string{"there"}},
		Warnings: []policy.Reason{{Code: policy.NoPullSecret, Message: "the pull secret absent is not in the namespace"}, {Code: policy.MirrorDiffers, Message: "another digest"}},
	}}}}
}

// TestSecretNamesAreNotReturned: a caller may name any namespace.
func TestSecretNamesAreNotReturned(t *testing.T) {
	calls := &recorder{}
	image := listOf(t, call(newEndpoint(t, mirrored{}, withRecorder(calls)), `{"images": ["nginx"], "namespace": "others"}`, nil)).Items[0].Images[0]
	if image.Mirror == nil || len(image.Mirror.PullSecrets) > 0 || len(image.Warnings) != 1 || image.Warnings[0].Code != policy.MirrorDiffers {
		t.Errorf("returned: %+v, warnings %v", image.Mirror, image.Warnings)
	}
	if v := calls.Last(t).Outcomes[0].Verdicts[0]; len(v.Redirect.PullSecrets) != 1 || len(v.Warnings) != 2 {
		t.Error("the log does not have it either")
	}
}

type labels map[string]map[string]string

func (l labels) Labels(_ context.Context, name string) (map[string]string, error) {
	if found, ok := l[name]; ok {
		return found, nil
	}
	return nil, errors.New("not found")
}

func TestManifests(t *testing.T) {
	const pod = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  serviceAccountName: admin
  imagePullSecrets: [{name: secret}]
  containers: [{name: web, image: "registry.test/bad:v1"}, {name: proxy, image: envoy}]
`
	for _, row := range []struct {
		reason string
		body   string
		query  string
		status int
		// namespaces of the objects that were judged, in their metadata
		namespaces []string
	}{
		{"a pod", pod, "", 200, []string{"default"}},
		{"a pod in a namespace of the query", pod, "namespace=shop", 200, []string{"shop"}},
		{"a pod and one with a namespace of its own", pod + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: b, namespace: own}\nspec: {containers: []}\n", "namespace=shop", 200, []string{"shop", "own"}},
		{"JSON", `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Service"}]}{"apiVersion": "v1", "kind": "Service"}`, "", 200, []string{"default", "default"}},
		{"an object of the cluster, which names a namespace", "apiVersion: v1\nkind: Node\nmetadata: {name: a, namespace: kube-system}\n", "", 200, []string{""}},
		{"a kind that may be in a namespace, and names one", "apiVersion: example.com/v1\nkind: Node\nmetadata: {name: a, namespace: own}\n", "", 200, []string{"own"}},
		{"nothing", "", "", 400, nil},
		{"only a comment", "# nothing\n", "", 400, nil},
		{"no object", "a: b\n", "", 400, nil},
		{"no YAML", "a: [b\n", "", 400, nil},
		{"an alias", "apiVersion: v1\nkind: Service\nmetadata: &m {name: a}\nspec: *m\n", "", 400, nil},
		{"an anchor alone", "apiVersion: v1\nkind: Service\nmetadata: &m {name: a}\n", "", 200, []string{"default"}},
		{"another query", pod, "timeout=3s", 400, nil},
		{"two namespaces", pod, "namespace=a&namespace=b", 400, nil},
		{"a namespace that is none", pod, "namespace=A", 400, nil},
		{"an object in one that is none", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ../a}\n", "", 400, nil},
		{"too many objects", strings.Repeat("---\napiVersion: v1\nkind: Service\n", api.MaxObjects+1), "", 413, nil},
		{"too many images", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n" + strings.Repeat("  - {image: a}\n", api.MaxImages+1), "", 413, nil},
	} {
		t.Run(row.reason, func(t *testing.T) {
			j := &judge{}
			w := call(newEndpoint(t, j), row.body, func(r *http.Request) {
				manifests(r)
				r.URL.RawQuery = row.query
			})
			if w.Code != row.status {
				t.Fatalf("HTTP %d, want %d: %s", w.Code, row.status, w.Body)
			}
			if row.status != 200 {
				errorOf(t, w)
				return
			}
			var namespaces []string
			for _, request := range j.requests {
				namespaces = append(namespaces, request.Object.Namespace())
				if !request.Anonymous || request.Subject.Bare {
					t.Errorf("anonymous %t, bare %t: want a known object without the use of its credentials", request.Anonymous, request.Subject.Bare)
				}
			}
			if !slices.Equal(namespaces, row.namespaces) || len(listOf(t, w).Items) != len(namespaces) {
				t.Errorf("judged in %v, want %v", namespaces, row.namespaces)
			}
		})
	}
}

// TestYAMLThatUnfolds: values are counted however YAML parts them.
func TestYAMLThatUnfolds(t *testing.T) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
	fill := func(unit string, most int) string { return config + strings.Repeat(unit, (most-len(config))/len(unit)) }
	for _, row := range []struct {
		reason, body string
		status       int
	}{
		{"lines", fill("- a:\n", api.MaxBody), 413},
		{"lines that end as on old Macs", fill("- a:\r", api.MaxBody), 413},
		{"lines that end as on mainframes", fill("- a:\u0085", api.MaxBody), 413},
		{"lines that end by a separator", fill("- a:\u2028", api.MaxBody), 413},
		{"lines that end by a paragraph", fill("- a:\u2029", api.MaxBody), 413},
		{"lists in lists", fill("  "+strings.Repeat("- ", 250)+"x\n", api.MaxBody), 413},
		{"keys in keys", fill("  "+strings.Repeat("? ", 250)+"x\n", api.MaxBody), 413},
		{"as much as charts have", fill("- a name of thirty characters or so: a value - of forty characters - or so\n", api.MaxBody), 200},
		{"the same, written on Windows", fill("- a name of thirty characters or so: a value - of forty characters - or so\r\n", api.MaxBody), 200},
	} {
		w := call(newEndpoint(t, &judge{}), row.body, func(r *http.Request) { r.Header.Set("Content-Type", "application/yaml") })
		if w.Code != row.status {
			t.Errorf("%s: HTTP %d, want %d: %.200s", row.reason, w.Code, row.status, w.Body)
		}
	}
}

func TestAPanicIsAnAnswer(t *testing.T) {
	calls := &recorder{}
	handler := newEndpoint(t, &judge{before: func(context.Context) { panic("the gate fell") }}, withRecorder(calls))
	for range api.DefaultRequests + 1 { // no turn is lost by it
		w := call(handler, `{"images": ["a"]}`, nil)
		if e := errorOf(t, w); w.Code != 500 || strings.Contains(e.Message, "fell") {
			t.Fatalf("HTTP %d: %s", w.Code, w.Body)
		}
	}
	if c := calls.Last(t); c.Cause != api.Panicked || !strings.Contains(c.Err.Error(), "the gate fell") {
		t.Errorf("recorded %+v", c)
	}
	if w := call(newEndpoint(t, &judge{}, withRecorder(falling{})), `{"images": ["a"]}`, nil); w.Code != 200 {
		t.Errorf("a recorder that falls: HTTP %d", w.Code)
	}
	if w := call(newEndpoint(t, silent{}), `{"images": ["a"]}`, nil); w.Code != 500 {
		t.Errorf("a gate that does not answer for all: HTTP %d", w.Code)
	}
}

type falling struct{}

func (falling) Record(context.Context, api.Call) { panic("the recorder fell") }

type silent struct{}

func (silent) DecideAll(context.Context, []gate.Request, func(int, int)) []gate.Outcome { return nil }

func TestTheQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		handler := newEndpoint(t, &judge{before: func(context.Context) { <-release }}, withLimits(api.Limits{Requests: 2, PerCaller: 1}))
		as := func(token string) func(*http.Request) {
			return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
		}
		answers := make(chan *httptest.ResponseRecorder, 2)
		go func() { answers <- call(handler, `{"images": ["a"]}`, nil) }()
		synctest.Wait()
		if w := call(handler, `{"images": ["a"]}`, nil); w.Code != 429 || w.Header().Get("Retry-After") == "" {
			t.Errorf("the caller's second: HTTP %d", w.Code)
		}
		go func() { answers <- call(handler, `{"images": ["a"]}`, as("dev-token")) }()
		synctest.Wait()
		close(release)
		for range 2 {
			if w := <-answers; w.Code != 200 {
				t.Errorf("HTTP %d: %s", w.Code, w.Body)
			}
		}
		if w := call(handler, `{"images": ["a"]}`, nil); w.Code != 200 {
			t.Errorf("afterwards: HTTP %d", w.Code)
		}
	})
}

func TestTheQueueOfAllIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		handler := newEndpoint(t, &judge{before: func(context.Context) { <-release }}, withLimits(api.Limits{Requests: 1}))
		first := make(chan *httptest.ResponseRecorder, 1)
		go func() { first <- call(handler, `{"images": ["a"]}`, nil) }()
		synctest.Wait()
		began := time.Now()
		w := call(handler, `{"images": ["a"]}`, nil)
		if e := errorOf(t, w); w.Code != 503 || e.Reason != api.QueueFull || time.Since(began) != 2*time.Second {
			t.Errorf("HTTP %d after %s: %+v", w.Code, time.Since(began), e)
		}
		close(release)
		if w := <-first; w.Code != 200 {
			t.Errorf("HTTP %d", w.Code)
		}
	})
}

func TestTheDeadline(t *testing.T) {
	for _, row := range []struct {
		reason string
		before func(release chan struct{}) func(context.Context)
		status int
		after  time.Duration
	}{
		{"a gate that heeds it answers by itself", func(chan struct{}) func(context.Context) {
			return func(ctx context.Context) { <-ctx.Done() }
		}, 200, 5 * time.Second},
		{"one that does not is not waited for", func(release chan struct{}) func(context.Context) {
			return func(context.Context) { <-release }
		}, 503, 5*time.Second + 100*time.Millisecond},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				handler := newEndpoint(t, &judge{before: row.before(release)}, withTimeout(5*time.Second))
				began := time.Now()
				w := call(handler, `{"images": ["a"]}`, nil)
				if w.Code != row.status || time.Since(began) != row.after {
					t.Errorf("HTTP %d after %s", w.Code, time.Since(began))
				}
				if w.Code == 503 && errorOf(t, w).Reason != api.TimedOut {
					t.Errorf("answered %s", w.Body)
				}
				close(release)
				synctest.Wait()
			})
		})
	}
}

func TestWithoutTokens(t *testing.T) {
	calls := &recorder{}
	handler := newEndpoint(t, &judge{}, withoutTokens("socket"), withRecorder(calls))
	w := call(handler, `{"images": ["a"]}`, func(r *http.Request) { r.Header.Del("Authorization") })
	if w.Code != 200 || calls.Last(t).User != "socket" {
		t.Errorf("HTTP %d: %+v", w.Code, calls.Last(t))
	}
}

func TestAnyOf(t *testing.T) {
	other := known{"other-token": "other"}
	for _, row := range []struct {
		reason, token, user string
		failing             bool
	}{
		{"the first knows", "ci-token", "ci", false},
		{"the second knows", "other-token", "other", false},
		{"unknown to both", "no-token", "", false},
		{"the first fails, and the second does not know", "lost-token", "", true},
	} {
		user, err := api.AnyOf{people{}, other}.Authenticate(t.Context(), row.token)
		if user.Name != row.user || (err != nil) != row.failing {
			t.Errorf("%s: %q, %v", row.reason, user.Name, err)
		}
	}
	if user, err := (api.AnyOf{people{}, known{"lost-token": "found"}}).Authenticate(t.Context(), "lost-token"); user.Name != "found" || err != nil {
		t.Errorf("the first fails, and the second knows: %q, %v", user.Name, err)
	}
}

// known are users by their tokens.
type known map[string]string

func (k known) Authenticate(_ context.Context, token string) (policy.User, error) {
	return policy.User{Name: k[token]}, nil
}

func TestNewRefuses(t *testing.T) {
	if _, err := api.New(configOf(&judge{})); err != nil {
		t.Fatal(err)
	}
	for reason, change := range map[string]setting{
		"no authenticator":      func(c *api.Config) { c.Authenticator = nil },
		"no decider":            func(c *api.Config) { c.Decider = nil },
		"both a token and none": func(c *api.Config) { c.User = "socket" },
		"a user without a name": withoutTokens(""),
		"no namespaces":         withNamespaces(nil),
		"no recorder":           withRecorder(nil),
		"no time":               withTimeout(-time.Second),
		"a minute":              withTimeout(time.Minute),
		"no caller":             withCallers(nil, nil),
		"a caller with no name": withCallers([]string{""}, nil),
		"less than nothing":     withLimits(api.Limits{Requests: -1}),
	} {
		config := configOf(&judge{})
		change(&config)
		if _, err := api.New(config); err == nil {
			t.Errorf("%s: not refused", reason)
		}
	}
}

func FuzzBodies(f *testing.F) {
	f.Add([]byte(`{"images": ["registry.test/app:v1"], "namespace": "shop"}`), false)
	f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: &m {name: a}\nspec: *m\n---\n{}\n"), true)
	handler := newEndpoint(f, &judge{})
	f.Fuzz(func(t *testing.T, body []byte, yaml bool) {
		w := call(handler, string(body), func(r *http.Request) {
			if yaml {
				manifests(r)
			}
		})
		switch w.Code {
		case 200:
			listOf(t, w)
		case 400, 413:
			errorOf(t, w)
		default:
			t.Errorf("HTTP %d for %q: %s", w.Code, body, w.Body)
		}
	})
}
