package listing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/scan"
)

var (
	pods  = scan.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}
	tasks = scan.Kind{Group: "tekton.dev", Version: "v1", Kind: "Task", Resource: "tasks", Namespaced: true}
)

// serve is an API server with a given handler.
func serve(t *testing.T, answer http.HandlerFunc) *Lister {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: path, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	made, err := New(client)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestParse: valid lists and invalid ones.
func TestParse(t *testing.T) {
	for _, row := range []struct {
		reason     string
		text       string
		kind       scan.Kind
		names      string
		unreadable int
		fails      bool
	}{
		{"items of a built-in kind have no kind", `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"c","remainingItemCount":7},"items":[{"metadata":{"name":"a","namespace":"n"},"spec":{}},{"metadata":{"name":"b"}}]}`, pods, "v1 Pod n/a, v1 Pod /b", 0, false},
		{"those of others do", `{"items":[{"apiVersion":"tekton.dev/v1","kind":"Task","metadata":{"name":"a"}}]}`, tasks, "tekton.dev/v1 Task /a", 0, false},
		{"in any order", `{"items":[{"spec":{},"metadata":{"name":"a"}}]}`, tasks, "tekton.dev/v1 Task /a", 0, false},
		{"spaces", "{ \"items\" : [ { \"metadata\" : { \"name\" : \"a\" } } ] }", pods, "v1 Pod /a", 0, false},
		{"none", `{"items":[]}`, pods, "", 0, false},
		{"null", `{"items":null}`, pods, "", 0, false},
		{"no items", `{"kind":"Table","rows":[]}`, pods, "", 0, false},
		{"a member stands twice: two readers would see two objects", `{"items":[{"metadata":{"name":"a"},"spec":{},"spec":{}}]}`, pods, "", 0, true},
		{"an item has another kind", `{"items":[{"metadata":{"name":"a"},"kind":"Job","apiVersion":"batch/v1"},{"metadata":{"name":"b"}}]}`, pods, "v1 Pod /b", 1, false},
		{"an item that is none", `{"items":[7,{"metadata":{"name":"b"}}]}`, pods, "v1 Pod /b", 1, false},
		{"it breaks off", `{"items":[{"metadata":{"name":"a"}}`, pods, "", 0, true},
		{"it is text", `not json`, pods, "", 0, true},
		{"it is an array", `[]`, pods, "", 0, true},
		{"it is empty", ``, pods, "", 0, true},
	} {
		page, err := parse([]byte(row.text), row.kind)
		if (err != nil) != row.fails {
			t.Errorf("%s: %v", row.reason, err)
			continue
		}
		var names []string
		for _, o := range page.Objects {
			names = append(names, o.APIVersion()+" "+o.Kind()+" "+o.Namespace()+"/"+o.Name())
		}
		if got := strings.Join(names, ", "); got != row.names || len(page.Unreadable) != row.unreadable {
			t.Errorf("%s: %q and %v, want %q", row.reason, got, page.Unreadable, row.names)
		}
		if strings.Contains(row.text, "continue") && (page.Continue != "c" || page.Remaining != 7) {
			t.Errorf("%s: %+v", row.reason, page)
		}
	}
}

// TestList: the requests, and the results of answers that are no list.
func TestList(t *testing.T) {
	const gone = `{"kind":"Status","apiVersion":"v1","metadata":{"continue":"next"},"status":"Failure","reason":"Expired","code":410}`
	const plainGone = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Expired","code":410}`
	for _, row := range []struct {
		reason string
		code   int
		body   string
		check  func(err error) bool
	}{
		{"a page", 200, `{"items":[{"metadata":{"name":"a"}}]}`, func(err error) bool { return err == nil }},
		{"too old, with a new continue token", 410, gone, func(err error) bool {
			expired, ok := errors.AsType[*scan.ExpiredError](err)
			return ok && expired.Next == "next"
		}},
		{"too old, and it does not", 410, plainGone, func(err error) bool {
			expired, ok := errors.AsType[*scan.ExpiredError](err)
			return ok && expired.Next == ""
		}},
		{"forbidden", 403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, func(err error) bool { return errors.Is(err, scan.ErrRefused) }},
		{"not there any more", 404, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, func(err error) bool { return errors.Is(err, scan.ErrRefused) }},
		{"server errors are retried by the caller", 500, `trouble`, func(err error) bool {
			_, expired := errors.AsType[*scan.ExpiredError](err)
			return err != nil && !expired && !errors.Is(err, scan.ErrRefused)
		}},
	} {
		var asked string
		l := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.Path + "?" + r.URL.Query().Encode()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(row.code)
			fmt.Fprint(w, row.body)
		})
		_, err := l.List(t.Context(), pods, "token", 250)
		if !row.check(err) {
			t.Errorf("%s: %v", row.reason, err)
		}
		if asked != "/api/v1/pods?continue=token&limit=250" {
			t.Errorf("%s: asked %s", row.reason, asked)
		}
	}
}

// TestLargePages: a page that is more than is read is asked for with fewer objects, down
// to one.
func TestLargePages(t *testing.T) {
	var limits []string
	huge := strings.Repeat("x", cluster.MaxPage)
	l := serve(t, func(w http.ResponseWriter, r *http.Request) {
		limits = append(limits, r.URL.Query().Get("limit"))
		w.Header().Set("Content-Type", "application/json")
		if len(limits) < 3 {
			fmt.Fprintf(w, `{"items":[{"metadata":{"name":"a"},"data":%q}]}`, huge)
			return
		}
		fmt.Fprint(w, `{"items":[{"metadata":{"name":"a"}}]}`)
	})
	page, err := l.List(t.Context(), tasks, "", 5)
	if err != nil || len(page.Objects) != 1 || strings.Join(limits, " ") != "5 3 2" {
		t.Errorf("limits %v, %v", limits, err)
	}
	l = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"items":[{"metadata":{"name":"a"},"data":%q}]}`, huge)
	})
	if _, err := l.List(t.Context(), tasks, "", 1); err == nil {
		t.Error("one object larger than a page was read")
	}
}

// TestKinds: what can be listed, parts of objects left out.
func TestKinds(t *testing.T) {
	l := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"gone.example","versions":[{"groupVersion":"gone.example/v1","version":"v1"}],"preferredVersion":{"groupVersion":"gone.example/v1","version":"v1"}}]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list","get"]},{"name":"pods/log","kind":"Pod","namespaced":true,"verbs":["list"]},{"name":"bindings","kind":"Binding","namespaced":true,"verbs":["create"]}]}`)
		default:
			http.Error(w, "unavailable", http.StatusServiceUnavailable)
		}
	})
	kinds, err := l.Kinds(context.Background())
	if err != nil || len(kinds) != 1 || kinds[0] != pods {
		t.Errorf("%v, %v", kinds, err)
	}
}

// FuzzParse: bytes of a hostile API server.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"metadata":{"continue":"c"},"items":[{"metadata":{"name":"a"}}]}`))
	f.Add([]byte(`{"items":[{"kind":"Pod","apiVersion":"v1"},{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		page, err := parse(text, pods)
		if err != nil && len(page.Objects) > 0 {
			t.Fatal("objects of an invalid list")
		}
		for _, o := range page.Objects {
			if o.Kind() == "" || o.APIVersion() == "" {
				t.Fatalf("an object of no kind: %v", o)
			}
		}
	})
}
