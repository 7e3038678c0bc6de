package listing

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/scan/follow"
)

func event(kind, name, version string, generation int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":%q,"namespace":"shop","uid":"u","resourceVersion":%q,"generation":%d}}}`+"\n", kind, name, version, generation)
}

// TestWatch: the requests, the reported events, and the version to continue from.
func TestWatch(t *testing.T) {
	const gone = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
	expired := func(err error) bool { _, ok := errors.AsType[*scan.ExpiredError](err); return ok }
	for _, row := range []struct {
		reason, body, told, next string
		code                     int
		check                    func(error) bool
	}{
		{"objects that come, change and go", event("ADDED", "a", "8", 1) + event("MODIFIED", "a", "9", 2) + event("DELETED", "a", "10", 2), "a a a(gone)", "10", 200, nil},
		{"a bookmark is no event, and is the version to continue from", event("ADDED", "a", "8", 1) + event("BOOKMARK", "", "50", 0), "a", "50", 200, nil},
		{"nothing", "", "", "7", 200, nil},
		{"too old, at once", gone, "", "7", 410, expired},
		{"too old, later", event("ADDED", "a", "8", 1) + `{"type":"ERROR","object":` + gone + "}\n", "a", "8", 200, expired},
		{"not allowed", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, "", "7", 403, func(err error) bool { return errors.Is(err, scan.ErrRefused) }},
		{"a kind that cannot be watched", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"MethodNotAllowed","code":405}`, "", "7", 405, func(err error) bool { return errors.Is(err, scan.ErrRefused) }},
		{"trouble", `trouble`, "", "7", 500, func(err error) bool { return err != nil && !expired(err) && !errors.Is(err, scan.ErrRefused) }},
	} {
		var asked string
		l := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked = fmt.Sprint(r.URL.Path, " ", r.URL.Query().Get("resourceVersion"), " ", r.URL.Query().Get("watch"), " ", strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"))
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(row.code)
			fmt.Fprint(w, row.body)
		})
		var names []string
		next, err := l.Watch(t.Context(), pods, "7", func(c follow.Change) {
			if c.Gone {
				c.Name += "(gone)"
			}
			names = append(names, c.Name)
		})
		if got := strings.Join(names, " "); got != row.told || next != row.next {
			t.Errorf("%s: reported %q up to %s, want %q up to %s", row.reason, got, next, row.told, row.next)
		}
		if row.check == nil && err != nil || row.check != nil && !row.check(err) {
			t.Errorf("%s: %v", row.reason, err)
		}
		if asked != "/api/v1/pods 7 true true" {
			t.Errorf("%s: asked %s", row.reason, asked)
		}
	}
}

// TestMarks: what changes a mark, and what has none.
func TestMarks(t *testing.T) {
	l := serve(t, func(http.ResponseWriter, *http.Request) {})
	old := metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "1", Generation: 3, Labels: map[string]string{"a": "b", "c": "d"}}
	mark := l.markOf(&old)
	now := metav1.NewTime(time.Unix(1, 0))
	for _, row := range []struct {
		reason string
		change func(*metav1.ObjectMeta)
		same   bool
	}{
		{"a status", func(m *metav1.ObjectMeta) {
			m.ResourceVersion, m.ManagedFields = "2", []metav1.ManagedFieldsEntry{{Manager: "kubelet", Subresource: "status"}}
		}, true},
		{"a spec", func(m *metav1.ObjectMeta) { m.Generation++ }, false},
		{"a label", func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"a": "b", "c": "e"} }, false},
		{"an annotation", func(m *metav1.ObjectMeta) { m.Annotations = map[string]string{"a": ""} }, false},
		{"an owner", func(m *metav1.ObjectMeta) { m.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }, false},
		{"it is being deleted", func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &now }, false},
		{"another object of the name", func(m *metav1.ObjectMeta) { m.UID = "v" }, false},
	} {
		changed := *old.DeepCopy()
		row.change(&changed)
		if got := l.markOf(&changed); (got == mark) != row.same || got == 0 {
			t.Errorf("%s: %d and %d, want the same %t", row.reason, mark, got, row.same)
		}
	}
	old.Generation = 0
	if got := l.markOf(&old); got != 0 {
		t.Errorf("an object without a generation has the mark %d: changes of its spec would be missed", got)
	}
}

// TestGet: an object, and an invalid one.
func TestGet(t *testing.T) {
	for _, row := range []struct {
		reason string
		code   int
		body   string
		check  func(error) bool
	}{
		{"a pod", 200, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"a"}}`, func(err error) bool { return err == nil }},
		{"gone", 404, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, func(err error) bool { return errors.Is(err, follow.ErrGone) }},
		{"not allowed", 403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, func(err error) bool { return errors.Is(err, scan.ErrRefused) }},
		{"trouble", 500, `trouble`, func(err error) bool {
			return err != nil && !errors.Is(err, follow.ErrUnreadable) && !errors.Is(err, follow.ErrGone) && !errors.Is(err, scan.ErrRefused)
		}},
		{"text", 200, `trouble`, func(err error) bool { return errors.Is(err, follow.ErrUnreadable) }},
		{"nested too deep", 200, `{"apiVersion":"v1","kind":"Pod","a":` + strings.Repeat(`[`, 300) + strings.Repeat(`]`, 300) + `}`, func(err error) bool { return errors.Is(err, follow.ErrUnreadable) }},
		{"too large", 200, `{"apiVersion":"v1","kind":"Pod","a":"` + strings.Repeat(`a`, 9<<20) + `"}`, func(err error) bool { return errors.Is(err, follow.ErrUnreadable) }},
	} {
		var asked string
		l := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.Path
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(row.code)
			fmt.Fprint(w, row.body)
		})
		object, err := l.Get(t.Context(), pods, "shop", "a")
		if !row.check(err) || err == nil && object.Name() != "a" {
			t.Errorf("%s: %v, %v", row.reason, object, err)
		}
		if asked != "/api/v1/namespaces/shop/pods/a" {
			t.Errorf("%s: asked %s", row.reason, asked)
		}
	}
	namespace := scan.Kind{Version: "v1", Kind: "Namespace", Resource: "namespaces"}
	l := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, r.URL.Path)
	})
	if object, err := l.Get(t.Context(), namespace, "", "shop"); err != nil || object.Name() != "/api/v1/namespaces/shop" {
		t.Errorf("of the cluster: asked %s, %v", object.Name(), err)
	}
}
