package merge_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/workload/internal/merge"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		reason, mapping string
		overrides       bool
		err             string // empty: none
	}{
		{"no merge", "{a: 1}", false, ""},
		{"other keys", "{<<: {a: 1}, b: 2}", false, ""},
		{"other keys before", "{b: 2, <<: {a: 1}}", false, ""},
		{"a key after", "{<<: {a: 1}, a: 2}", true, ""},
		{"a key before", "{a: 2, <<: {a: 1}}", false, `line 1: << brings the key "a", which is set before it in line 1`},
		{"a key before an alias", "{x: &x {a: 1}, a: 2, <<: *x}", false, "write << first"},
		{"of two merged ones", "{<<: [{a: 1}, {a: 2}]}", true, ""},
		{"of a merge in a merged one", "{<<: {<<: {a: 1}, b: 1}, a: 2}", true, ""},
		{"a name in quotes", "{a: 1, '<<': {a: 2}}", false, ""},
		{"a key that is an alias", "{x: &x a, <<: {a: 1}, *x : 2}", true, ""},
	} {
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(c.mapping), &document); err != nil {
			t.Fatal(c.reason, err)
		}
		overrides, err := merge.Check(document.Content[0])
		if overrides != c.overrides || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %t, %v", c.reason, overrides, err)
		}
	}
}
