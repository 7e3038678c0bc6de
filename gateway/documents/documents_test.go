package documents_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/gateway/documents"
)

// ExampleSources uses documents once both of their sources have arrived.
func ExampleSources() {
	sources := documents.NewSources()
	sources.Await("folders")
	sources.Await("cluster")
	fmt.Println(sources.Arrived("folders"))
	if sources.Arrived("cluster") {
		sources.Used()
	}
	<-sources.Ready()
	fmt.Println("ready")
	// Output:
	// false
	// ready
}

// TestStates: a state is reported when it is new or has changed, and again for a document that was
// gone.
func TestStates(t *testing.T) {
	states := documents.States{}
	for _, step := range []struct {
		reason, key, state string
		want               bool
	}{
		{"a new document", "a", "", true},
		{"the same state", "a", "", false},
		{"another state", "a", "broken", true},
		{"another document", "b", "broken", true},
		{"mended", "a", "", true},
	} {
		if got := states.Changed(step.key, step.state); got != step.want {
			t.Errorf("%s: changed %t, want %t", step.reason, got, step.want)
		}
	}
	states.Keep(func(key string) bool { return key == "b" })
	if !states.Changed("a", "") || states.Changed("b", "broken") {
		t.Error("a document that is gone is known, or one that is there is not")
	}
}

// TestObjectOf: the object that a status is written to.
func TestObjectOf(t *testing.T) {
	got := documents.ObjectOf(document.Document{
		Key:  document.Key{Group: "kyverno.io", Resource: "policies", Namespace: "shop", Name: "signed"},
		Kind: schema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: "Policy"}, UID: "1",
		Raw: []byte(`{"metadata":{"generation":7}}`),
	})
	if got.Generation != 7 || got.Resource.String() != "kyverno.io/v1, Resource=policies" || got.Namespace != "shop" || got.Name != "signed" || got.UID != "1" {
		t.Errorf("got %+v", got)
	}
	if n := documents.Generation([]byte("{")); n != 0 {
		t.Errorf("generation %d of no document", n)
	}
}

// TestCompile: a compiler's result, its error, and a panic as an error.
func TestCompile(t *testing.T) {
	for _, c := range []struct {
		reason  string
		compile func() (int, error)
		want    int
		err     string
	}{
		{"compiled", func() (int, error) { return 1, nil }, 1, ""},
		{"refused", func() (int, error) { return 0, errors.New("no such field") }, 0, "no such field"},
		{"panics", func() (int, error) { panic("index out of range") }, 0, "defect: index out of range"},
	} {
		got, err := documents.Compile(c.compile)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d, %v", c.reason, got, err)
		}
	}
}
