package comment_test

import (
	"fmt"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/comment"
)

func Example() {
	for _, c := range comment.Read("# the team's\na:\n- b # of two\n") {
		fmt.Println(c.Path, c.Text)
	}
	var other yaml.Node
	if err := yaml.Unmarshal([]byte("c: d\n"), &other); err != nil {
		fmt.Println(err)
	}
	fmt.Println(comment.Put(other.Content[0], []string{"c"}, "# of two"), comment.Put(other.Content[0], []string{"a"}, "# lost"))
	text, err := yaml.Marshal(&other)
	fmt.Print(string(text), err)
	// Output:
	// [a] # the team's
	// [a 0] # of two
	// true false
	// # of two
	// c: d
	// <nil>
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		reason, text string
		want         []string
	}{
		{"each comment is about the value at it", "a: # one\n  # two\n  b: c # three\n", []string{"a: # one", "a.b: # two", "a.b: # three"}},
		{"the entries of a list have numbers", "a:\n# one\n- b\n# two\n- c: d\n", []string{"a.0: # one", "a.1: # two"}},
		{"a comment at the end is about the last value", "a: b\n# end\n", []string{"a: # end"}},
		{"a sign in a text is none", "a: 'b # c'\nd: |\n  # e\n", nil},
		{"an alias repeats no comment", "a: &x\n  b: c # one\nd: *x\n", []string{"a.b: # one"}},
		{"what cannot be read has none", "a: [ # one\n", nil},
	} {
		var got []string
		for _, one := range comment.Read(c.text) {
			at := ""
			for i, name := range one.Path {
				if i > 0 {
					at += "."
				}
				at += name
			}
			got = append(got, at+": "+one.Text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// FuzzPut: no comment, as it is read or of any text, changes the document that it is written to.
func FuzzPut(f *testing.F) {
	f.Add("# a\nb: c # d\n", "# a\u2028b: c")
	f.Add("#\u0085a: b\n", "\r- a\n\nb")
	f.Fuzz(func(t *testing.T, text, other string) {
		var document yaml.Node
		if err := yaml.Unmarshal([]byte("a: {b: [c, d: e]}\nf: g\n"), &document); err != nil {
			t.Fatal(err)
		}
		texts := []string{other}
		for _, one := range comment.Read(text) {
			texts = append(texts, one.Text)
		}
		for i, one := range texts {
			path := [][]string{nil, {"a"}, {"a", "b"}, {"a", "b", "1"}, {"a", "b", "1", "d"}, {"f"}}[i%6]
			if !comment.Put(document.Content[0], path, one) {
				t.Fatalf("%v is not there", path)
			}
		}
		written, err := yaml.Marshal(&document)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := yaml.Unmarshal(written, &got); err != nil || fmt.Sprint(got) != "map[a:map[b:[c map[d:e]]] f:g]" {
			t.Fatalf("%v, %v:\n%s", got, err, written)
		}
	})
}
