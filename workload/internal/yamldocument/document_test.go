package yamldocument_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/workload/internal/yamldocument"
)

func TestToJSON(t *testing.T) {
	for _, c := range []struct {
		reason, document, json string
		err                    string // empty: none
	}{
		{"an empty document", "", "null", ""},
		{"no merge", "{a: 1}", `{"a":1}`, ""},
		{"other keys", "{<<: {a: 1}, b: 2}", `{"a":1,"b":2}`, ""},
		{"other keys before", "{b: 2, <<: {a: 1}}", `{"a":1,"b":2}`, ""},
		{"a key after", "{<<: {a: 1}, a: 2}", `{"a":2}`, ""},
		{"a key before", "{a: 2, <<: {a: 1}}", "", `YAML: line 1: << brings the key "a", which is set before it in line 1`},
		{"a key before an alias", "{x: &x {a: 1}, a: 2, <<: *x}", "", "write << first"},
		{"of two merged ones, the first", "{<<: [{a: 1}, {a: 2}]}", `{"a":1}`, ""},
		{"of a merge in a merged one", "{<<: {<<: {a: 1}, b: 1}, a: 2}", `{"a":2,"b":1}`, ""},
		{"a name in quotes", "{a: 1, '<<': {a: 2}}", `{"\u003c\u003c":{"a":2},"a":1}`, ""},
		{"a key that is an alias", "{x: &x a, <<: {a: 1}, *x : 2}", `{"a":2,"x":"a"}`, ""},
		{"a key twice beside an override", "{<<: {a: 1}, a: 2, b: 1, b: 2}", "", `key "b" is already set in line 1`},
		{"a second document", "a: 1\n...\nb: 2", "", "another document follows without a line of ---"},
		{"as deep as allowed", strings.Repeat("[", yamldocument.MaxDepth) + strings.Repeat("]", yamldocument.MaxDepth), strings.Repeat("[", yamldocument.MaxDepth) + strings.Repeat("]", yamldocument.MaxDepth), ""},
		{"too deep", strings.Repeat("[", yamldocument.MaxDepth+2) + strings.Repeat("]", yamldocument.MaxDepth+2), "", "MaxDepth"},
		{"too large", strings.Repeat(" ", yamldocument.MaxSize+1), "", "MaxYAML"},
		{"an anchor in itself", "a: &a [*a]", "", "an anchor contains itself"},
	} {
		json, err := yamldocument.ToJSON([]byte(c.document))
		if got := strings.TrimSpace(string(json)); got != c.json || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %.200s, %v", c.reason, got, err)
		}
	}
}

func ExampleToJSON() {
	json, err := yamldocument.ToJSON([]byte("defaults: &defaults {replicas: 1}\nweb: {<<: *defaults, replicas: 2}"))
	fmt.Println(string(json), err)
	// Output: {"defaults":{"replicas":1},"web":{"replicas":2}} <nil>
}
