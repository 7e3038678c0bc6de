package workload_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/workload"
)

func TestReadDocuments(t *testing.T) {
	for name, c := range map[string]struct {
		reason, input string
		want          []string // where each was read
		err           string
	}{
		"JSON":           {"no kind is wanted", `{"Stages":[{"From":{"Image":"a"}}]}`, []string{"test.json, document 1"}, ""},
		"YAML":           {"the same", "stages:\n- from: a\n", []string{"test.json, document 1"}, ""},
		"several":        {"one after another", `{"a":1}` + "\n" + `{"b":1}`, []string{"test.json, document 1", "test.json, document 2"}, ""},
		"an object":      {"any document will do", `{"apiVersion":"v1","kind":"Pod"}`, []string{"test.json, document 1"}, ""},
		"a list of them": {"is one document", `{"apiVersion":"v1","kind":"List","items":[{"kind":"Pod"},{"kind":"Pod"}]}`, []string{"test.json, document 1"}, ""},
		"odd members":    {"none has a meaning", `{"kind":1,"apiVersion":[],"metadata":"x"}`, []string{"test.json, document 1"}, ""},
		"nothing":        {"the program that wrote it failed", "", nil, "there is no document"},
		"null":           {"the same", "null\n", nil, "there is no document"},
		"text":           {"no object", "FROM nginx\n", nil, "want an object, got text"},
		"list":           {"no object", `["a"]`, nil, "want an object, got a list"},
		"cut":            {"no JSON", `{"a":`, nil, "YAML"},
		"twice":          {"parsers take either", `{"image":"a","image":"b"}`, nil, `the name "image" stands twice`},
		"twice, deep":    {"parsers take either", `{"a":[{"image":"a","image":"b"}]}`, nil, `the name "image" stands twice`},
		"deep":           {"a bound", strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300), nil, "MaxDepth"},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := workload.ReadDocuments(strings.NewReader(c.input), "test.json")
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%s: %v, want %q", c.reason, err, c.err)
				}
				return
			}
			if err != nil || len(documents) != len(c.want) {
				t.Fatalf("%s: %v, %v", c.reason, documents, err)
			}
			for i, d := range documents {
				if d.Source() != c.want[i] || !d.IsDocument() || d.Kind()+d.APIVersion()+d.Name()+d.Namespace() != "" || d.String() != "document" {
					t.Errorf("%s: %q of %s, kind %q", c.reason, d, d.Source(), d.Kind())
				}
			}
		})
	}
}

// TestDocumentPlaces: in a document that looks like a Pod, nothing stands at a
// standard place, and extractors find what they name.
func TestDocumentPlaces(t *testing.T) {
	raw := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a"},"spec":{"containers":[{"name":"c","image":"a"}]}}`)
	document, err := workload.ParseDocument(raw, "plan")
	if err != nil {
		t.Fatal(err)
	}
	if uses, err := workload.Extract(document); err != nil || len(uses) > 0 {
		t.Errorf("%v, %v", uses, err)
	}
	if id := workload.IdentityOf(document); id.Namespace+id.ServiceAccount != "" || len(workload.AddPullSecrets(document, []string{"s"})) > 0 {
		t.Errorf("%+v", id)
	}
	uses, err := workload.ExtractWith(document, []workload.Extractor{{Path: "/spec/containers/*/image"}})
	if err != nil || len(uses) != 1 || uses[0].Pointer != "/spec/containers/0/image" {
		t.Fatalf("%v, %v", uses, err)
	}
	operations, err := workload.Pin(uses[0], "b")
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := workload.Apply(document, operations); err != nil || !changed.IsDocument() || changed.Source() != "plan" {
		t.Errorf("%v, %v", changed, err)
	}
	if object, err := workload.Parse(raw); err != nil || object.IsDocument() || (workload.Object{}).IsDocument() {
		t.Errorf("an object is none: %v", err)
	}
	if _, err := workload.Parse([]byte(`{"spec":{}}`)); !errors.Is(err, workload.ErrNoKind) {
		t.Errorf("a manifest without kind: %v", err)
	}
	if _, err := workload.ParseDocument([]byte(`{"a":1}x`), ""); err == nil {
		t.Error("something follows")
	}
}

func FuzzReadDocuments(f *testing.F) {
	f.Add([]byte(`{"a":{"b":["c"]}}`))
	f.Add([]byte("a: &a [x]\nb: [*a]\n---\nkind: 1\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		documents, err := workload.ReadDocuments(strings.NewReader(string(input)), "fuzz")
		if (err == nil) != (len(documents) > 0) {
			t.Fatalf("%v, %v", documents, err)
		}
		for _, d := range documents {
			if uses, err := workload.Extract(d); !d.IsDocument() || len(uses) > 0 || err != nil {
				t.Fatalf("%v, %v", uses, err)
			}
		}
	})
}
