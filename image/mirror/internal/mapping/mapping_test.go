package mapping_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror/internal/mapping"
)

func repository(t *testing.T, s string) image.Repository {
	t.Helper()
	r, err := image.ParseRepository(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestThereAndBack has an empty want where the mapping is refused.
func TestThereAndBack(t *testing.T) {
	for _, test := range []struct{ reason, source, template, name, want string }{
		{"the whole path", "quay.io/team", "m.corp/q/{path}", "quay.io/team/x", "m.corp/q/team/x"},
		{"the rest", "quay.io/team", "m.corp/q/{rest}", "quay.io/team/x", "m.corp/q/x"},
		{"no rest", "quay.io/team/x", "m.corp/q/{rest}/y", "quay.io/team/x", "m.corp/q/y"},
		{"the host", "quay.io", "m.corp/{host}/{path}", "quay.io/x", "m.corp/quay.io/x"},
		{"a wildcard's host", "*.io", "m.corp/{host}/{path}", "a.b.io/x", "m.corp/a.b.io/x"},
		{"a wildcard", "*.io", "{wildcard}.corp/{path}", "a.b.io/x", "a.b.corp/x"},
		{"a wildcard at both ends", "*.io", "m.corp/{wildcard}/{path}/{wildcard}", "a.io/x", "m.corp/a/x/a"},
		{"a wildcard inside", "*.io:5000", "m.corp/a-{wildcard}-b/{path}", "a.io:5000/x", "m.corp/a-a-b/x"},
		{"nothing of the path", "quay.io", "m.corp/all", "quay.io/x", ""},
		{"nothing of the wildcard", "*.io", "m.corp/{path}", "a.io/x", ""},
		{"a port inside the path", "*.io:5000", "m.corp/{host}/{path}", "a.io:5000/x", ""},
		{"a path of one part at Docker Hub", "quay.io", "docker.io/{path}", "quay.io/x", ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			source, err := mapping.ParseSource(test.source)
			if err != nil {
				t.Fatal(err)
			}
			m, err := mapping.Parse(test.template, source)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.CheckInverse(); (err == nil) != (test.want != "") {
				t.Fatalf("got %v, want refused: %t", err, test.want == "")
			}
			if test.want == "" {
				return
			}
			from := repository(t, test.name)
			to, err := m.Forward(from)
			if err != nil || to.String() != test.want {
				t.Fatalf("%v, %v", to, err)
			}
			if back, ok := m.Inverse(to); !ok || back != from {
				t.Errorf("back: %v, %t", back, ok)
			}
			for _, other := range []string{to.Registry() + "x/" + to.Path(), to.Registry() + "/other/" + to.Path(), to.Registry() + "/other"} {
				copied := repository(t, other)
				if back, ok := m.Inverse(copied); ok {
					if again, err := m.Forward(back); err != nil || again != copied {
						t.Errorf("%s is taken back to %s, which is %s, %v", copied, back, again, err)
					}
				}
			}
		})
	}
}

func TestIndexOrder(t *testing.T) {
	var x mapping.Index[string]
	for _, s := range []string{"*.corp", "*.b.corp", "*.b.corp/a/b", "*.b.corp/a", "x.b.corp", "x.b.corp/a", "y.corp/a", "*.corp/ab"} {
		source, err := mapping.ParseSource(s)
		if err != nil {
			t.Fatal(err)
		}
		x.AddSource(source, s)
	}
	var got []string
	x.Visit(repository(t, "x.b.corp/a/b/c"), func(s string, _ image.Repository) bool {
		got = append(got, s)
		return true
	})
	want := []string{"x.b.corp/a", "x.b.corp", "*.b.corp/a/b", "*.b.corp/a", "*.b.corp", "*.corp"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), strings.Join(want, " "))
	}
}

func Example() {
	source, err := mapping.ParseSource("quay.io/team")
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := mapping.Parse("cache.example.com/quay/{rest}", source)
	if err != nil {
		fmt.Println(err)
		return
	}
	copied, err := image.ParseRepository("cache.example.com/quay/app")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Inverse(copied))
	// Output: quay.io/team/app true
}
