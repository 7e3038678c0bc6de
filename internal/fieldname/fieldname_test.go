package fieldname_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/quaymaster/quaymaster/internal/fieldname"
)

type base struct {
	Name string `json:"name"`
}

type document struct {
	base
	Rules []struct {
		Kinds []string `json:"kinds,omitempty"`
	} `json:"rules"`
	Spec *base `json:"spec"`
}

func TestNearest(t *testing.T) {
	for _, c := range []struct{ reason, path, want string }{
		{"a misspelt field of an embedded struct", "nam", "name"},
		{"another case", "Name", "name"},
		{"in an entry of a list", "rules[1].kind", "kinds"},
		{"behind a pointer", "spec.nmae", "name"},
		{"unlike all fields", "zone", ""},
		{"below an unknown field", "specs.name", ""},
		{"below a text", "name.first", ""},
	} {
		if got := fieldname.Nearest(c.path, reflect.TypeFor[*document]()); got != c.want {
			t.Errorf("%s: %s: %q", c.reason, c.path, got)
		}
	}
}

func ExampleNearest() {
	type settings struct {
		Timeout string `json:"timeout"`
	}
	fmt.Println(fieldname.Nearest("timeuot", reflect.TypeFor[settings]()))
	// Output: timeout
}
