package source_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quaymaster/quaymaster/policy/convert/internal/said"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

type known struct {
	Spec spec `json:"spec"`
}

type spec struct {
	Names []string `json:"names"`
	Count int      `json:"count"`
}

// TestDecode carries a document that is known whole, and refuses it by path with one
// thing wrong.
func TestDecode(t *testing.T) {
	for _, row := range []struct{ reason, text, problem string }{
		{"all of it is known", `{"spec": {"names": ["a"], "count": 2}}`, ""},
		{"an unknown field", `{"spec": {"names": ["a"], "more": 2}}`, "document 2: spec.more: unknown field"},
		{"a field in another case", `{"spec": {"Names": ["a"]}}`, "document 2: spec.Names: unknown field"},
		{"a text for a list", `{"spec": {"names": "a"}}`, "document 2: spec.names: want a list, found string"},
		{"a text for a number", `{"spec": {"count": "2"}}`, "document 2: spec.count: want a whole number, found string"},
	} {
		c := source.New(source.Options{})
		var into known
		ok := c.Decode([]byte(row.text), &into, "document 2: ")
		if ok != (row.problem == "") || ok != (len(c.Problems) == 0) {
			t.Errorf("%s: %v, and %v", row.reason, ok, c.Problems)
		}
		if !ok && !strings.HasPrefix(c.Problems[0].Error(), row.problem) {
			t.Errorf("%s: %v, want %q", row.reason, c.Problems[0], row.problem)
		}
	}
}

// TestSplit gives documents their places.
func TestSplit(t *testing.T) {
	documents, err := source.Split([]byte("apiVersion: v1\nkind: A\n---\n# nothing\n---\nkind: [B]\nspec: {}\n"))
	if err != nil || len(documents) != 2 {
		t.Fatalf("%d documents: %v", len(documents), err)
	}
	first, second := documents[0], documents[1]
	if first.APIVersion != "v1" || first.Kind != "A" || first.At("kind") != "document 1: kind" || first.Has("spec") {
		t.Errorf("the first document is %+v", first)
	}
	if second.Kind != "" || second.At("kind") != "document 2: kind" || !second.Has("spec") {
		t.Errorf("the second document is %+v", second)
	}
	alone, err := source.Split([]byte("kind: A"))
	if err != nil || alone[0].At("kind") != "kind" {
		t.Errorf("a document alone has places like %q: %v", alone[0].At("kind"), err)
	}
}

// TestFile reads what lies in the folder that was handed in, and nothing else.
func TestFile(t *testing.T) {
	folder := fstest.MapFS{"etc/key": &fstest.MapFile{Data: []byte("key")}, "etc/large": &fstest.MapFile{Data: make([]byte, 1<<20+1)}}
	for _, row := range []struct {
		reason, name string
		options      source.Options
		problem      string
	}{
		{"it is there", "/etc/key", source.Options{Files: folder}, ""},
		{"dots lead nowhere else", "/../etc/./key", source.Options{Files: folder}, ""},
		{"it is not there", "/etc/other", source.Options{Files: folder}, "at: names the file /etc/other, which cannot be read"},
		{"it is too large", "/etc/large", source.Options{Files: folder}, "at: names the file /etc/large, which cannot be read"},
		{"no folder was handed in", "/etc/key", source.Options{}, "at: names the file /etc/key: give --root"},
	} {
		c := source.New(row.options)
		data, ok := c.File(row.name, "at")
		if ok != (row.problem == "") || ok != (string(data) == "key") || ok != (len(c.Problems) == 0) {
			t.Errorf("%s: %q, %v and %v", row.reason, data, ok, c.Problems)
		}
		if !ok && !strings.HasPrefix(c.Problems[0].Error(), row.problem) {
			t.Errorf("%s: %v, want %q", row.reason, c.Problems[0], row.problem)
		}
	}
}

// TestSay gives each policy a name of its own, and refuses an expression that the
// gateway would not compile.
func TestSay(t *testing.T) {
	c := source.New(source.Options{})
	for range 2 {
		c.Say(&said.Policy{Name: "A/b", Images: []said.ImageReference{{Expression: strings.Repeat("x", 60<<10)}}})
	}
	if c.Policies[0].Name != "a-b" || c.Policies[1].Name != "a-b-2" || len(c.Problems) > 0 {
		t.Errorf("the names are %q and %q, refused is %v", c.Policies[0].Name, c.Policies[1].Name, c.Problems)
	}
	c.Say(&said.Policy{Name: "c", Images: []said.ImageReference{{Expression: strings.Repeat("x", 60<<10+1)}}})
	if len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Error(), "take an expression of 61441 bytes") {
		t.Errorf("an expression that is too long is refused with %v", c.Problems)
	}
}
