package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster"
)

// apiServer answers as an API server does, and counts.
type apiServer struct {
	asked atomic.Int64
	last  atomic.Pointer[http.Request]
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.asked.Add(1)
	a.last.Store(r)
	w.Header().Set("Content-Type", "application/json")
	refuse := func(code int, reason string) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	}
	deployment := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":3}}`
	switch r.Method + " " + r.URL.Path {
	case "GET /api":
		_, _ = fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "GET /api/v1":
		_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get"]}]}`)
	case "GET /apis":
		_, _ = fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	case "GET /apis/apps/v1/namespaces/shop/deployments/web":
		_, _ = fmt.Fprint(w, deployment)
	case "GET /apis/apps/v1/namespaces/shop/deployments":
		more := ""
		if r.URL.Query().Get("labelSelector") == "size=huge" {
			more = "token"
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":"apps/v1","kind":"DeploymentList","metadata":{"continue":%q},"items":[%s]}`, more, deployment)
	case "GET /api/v1/namespaces/shop/pods": // without the kind of each one, as the API server lists built-in kinds
		_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`)
	case "GET /apis/example.test/v1/namespaces/shop/crates":
		_, _ = fmt.Fprint(w, `{"apiVersion":"example.test/v1","kind":"CrateList","items":[{"apiVersion":"example.test/v2","kind":"Box"}]}`)
	case "GET /apis/example.test/v1/namespaces/shop/lists":
		_, _ = fmt.Fprint(w, `{"items":[{"metadata":{"name":"a"}},"text"]}`)
	case "GET /api/v1/namespaces/shop/configmaps/large":
		_, _ = fmt.Fprintf(w, `{"data":{"a":%q}}`, strings.Repeat("a", 3<<20))
	case "GET /api/v1/namespaces/shop/pods/hidden", "GET /api/v1/pods":
		refuse(http.StatusForbidden, "Forbidden")
	case "GET /api/v1/namespaces/shop/pods/late":
		refuse(http.StatusInternalServerError, "InternalError")
	case "POST /apis/authorization.k8s.io/v1/subjectaccessreviews":
		var question map[string]any
		_ = json.NewDecoder(r.Body).Decode(&question)
		question["status"] = map[string]any{"allowed": true}
		_ = json.NewEncoder(w).Encode(question)
	default:
		refuse(http.StatusNotFound, "NotFound")
	}
}

func newObjects(t *testing.T, c *clock) (*cluster.Objects, *apiServer) {
	t.Helper()
	api := &apiServer{}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`, server.URL)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: path, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	made, err := cluster.NewObjects(cluster.ObjectOptions{Client: client, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made, api
}

func TestObjects(t *testing.T) {
	o, _ := newObjects(t, &clock{time.Unix(1e9, 0)})
	deployments := cluster.Place{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop"}
	named := func(at cluster.Place, name string) cluster.Place { at.Name = name; return at }
	core := func(resource, name string) cluster.Place {
		return cluster.Place{Version: "v1", Resource: resource, Namespace: "shop", Name: name}
	}
	web, err := o.Get(t.Context(), named(deployments, "web"))
	if replicas := web["spec"].(map[string]any)["replicas"]; err != nil || replicas != int64(3) {
		t.Errorf("replicas %T(%v): %v", replicas, replicas, err)
	}
	list, err := o.List(t.Context(), deployments, nil)
	if items, _ := list["items"].([]any); err != nil || len(items) != 1 {
		t.Errorf("%v: %v", list, err)
	}
	for _, c := range []struct {
		reason string
		at     cluster.Place
		labels map[string]string
		is     error // nil: a place that cannot be
		says   string
	}{
		{"an object that is not there", named(deployments, "other"), nil, cluster.ErrNotFound, "deployments.apps shop/other is not found"},
		{"one that the gateway may not read", core("pods", "hidden"), nil, cluster.ErrForbidden, "grant its service account get on pods"},
		{"a list that it may not read", cluster.Place{Version: "v1", Resource: "pods"}, nil, cluster.ErrForbidden, "grant its service account list on pods"},
		{"an API server that fails", core("pods", "late"), nil, cluster.ErrUnavailable, "could not be looked up"},
		{"an object above the bound", core("configmaps", "large"), nil, cluster.ErrUnavailable, "2097152"},
		{"a list that goes on", deployments, map[string]string{"size": "huge"}, cluster.ErrUnavailable, "more than 2000"},
		{"labels that are none", deployments, map[string]string{"a": "b c"}, nil, "b c"},
		{"a Secret", core("secrets", "pull"), nil, nil, "not shown"},
		{"a Secret by its subresource", core("secrets/x", "pull"), nil, nil, "not shown"},
		{"the Secrets of a namespace, as its subresource", cluster.Place{Version: "v1", Resource: "namespaces/secrets", Name: "shop"}, nil, nil, "not shown"},
		{"all Secrets, by a watch", cluster.Place{Version: "v1", Resource: "watch", Name: "secrets"}, nil, nil, "not shown"},
		{"a namespace's own subresource", cluster.Place{Version: "v1", Resource: "namespaces/status", Name: "shop"}, nil, cluster.ErrNotFound, "is not found"},
		{"a name that leads elsewhere", named(deployments, "../../../../api/v1/namespaces/shop/secrets/pull"), nil, nil, "no object can be at"},
		{"a namespace that leads elsewhere", cluster.Place{Version: "v1", Resource: "pods", Namespace: "../secrets"}, nil, nil, "no object can be at"},
		{"a resource that leads elsewhere", core("pods/../../secrets", "pull"), nil, nil, "no object can be at"},
		{"no resource", core("", "a"), nil, nil, "no object can be at"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			read := func() error { _, err := o.List(t.Context(), c.at, c.labels); return err }
			if c.at.Name != "" {
				read = func() error { _, err := o.Get(t.Context(), c.at); return err }
			}
			err := read()
			if known := (*cluster.Error)(nil); errors.As(err, &known) != (c.is != nil) || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// TestItems: expressions read the kind and the apiVersion of each object of a list, also of
// built-in kinds.
func TestItems(t *testing.T) {
	o, _ := newObjects(t, &clock{time.Unix(1e9, 0)})
	for _, c := range []struct {
		group, resource string
		want            []any
	}{
		{"", "pods", []any{
			map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}},
			map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "b"}},
		}},
		{"apps", "deployments", []any{map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{"replicas": int64(3)},
		}}},
		{"example.test", "crates", []any{map[string]any{"apiVersion": "example.test/v2", "kind": "Box"}}},
		{"example.test", "lists", []any{map[string]any{"metadata": map[string]any{"name": "a"}}, "text"}},
	} {
		at := cluster.Place{Group: c.group, Version: "v1", Resource: c.resource, Namespace: "shop"}
		for range 2 { // the second one is cached
			list, err := o.List(t.Context(), at, nil)
			if err != nil || !reflect.DeepEqual(list["items"], c.want) {
				t.Errorf("%s: %v, want %v: %v", at, list["items"], c.want, err)
			}
		}
	}
}

func TestObjectsAreRememberedForSeconds(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	o, api := newObjects(t, c)
	for _, step := range []struct {
		reason string
		name   string
		later  time.Duration
		asked  int64 // in all
	}{
		{"the first look", "web", 0, 1},
		{"a second one", "web", time.Second, 1},
		{"another name", "absent", 0, 2},
		{"an absent object", "absent", time.Second, 2},
		{"later", "web", cluster.DefaultObjectTTL, 3},
	} {
		c.now = c.now.Add(step.later)
		_, _ = o.Get(t.Context(), cluster.Place{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: step.name})
		if got := api.asked.Load(); got != step.asked {
			t.Errorf("%s: asked %d times, want %d", step.reason, got, step.asked)
		}
	}
}

func TestReviewsAloneAreMade(t *testing.T) {
	o, api := newObjects(t, &clock{time.Unix(1e9, 0)})
	question := map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": map[string]any{"user": "ann"}}
	answered, err := o.Review(t.Context(), cluster.Place{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}, question)
	if status, _ := answered["status"].(map[string]any); err != nil || status["allowed"] != true {
		t.Errorf("%v: %v", answered, err)
	}
	asked := api.asked.Load()
	for reason, at := range map[string]cluster.Place{
		"a pod":                       {Version: "v1", Resource: "pods", Namespace: "shop"},
		"a token":                     {Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"},
		"a review of another's group": {Group: "reviews.example", Version: "v1", Resource: "reviews"},
	} {
		if _, err := o.Review(t.Context(), at, question); err == nil || api.asked.Load() != asked {
			t.Errorf("%s was made: %v", reason, err)
		}
	}
}

func TestKinds(t *testing.T) {
	o, _ := newObjects(t, &clock{time.Unix(1e9, 0)})
	if pods, err := o.Kind(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"}); err != nil || pods.Resource != "pods" {
		t.Errorf("%v: %v", pods, err)
	}
	if _, err := o.Kind(t.Context(), schema.GroupVersionKind{Group: "acme.example", Version: "v1", Kind: "Widget"}); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("a kind that is not served: %v", err)
	}
}
