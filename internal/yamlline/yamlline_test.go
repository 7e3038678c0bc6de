package yamlline_test

import (
	"fmt"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/internal/yamlline"
)

const document = `# settings
kind: Configuration
webhooks:
  port: 443
  rules:
    - name: a
    - {name: b, kinds: [Pod]}
"mode": enforce
`

func TestOf(t *testing.T) {
	for _, c := range []struct {
		reason, path string
		want         int
	}{
		{"a field", "kind", 2},
		{"a field of an object", "webhooks.port", 4},
		{"a field of an entry of a list", "webhooks.rules[1].kinds[0]", 7},
		{"a quoted key", "mode", 8},
		{"a field that is not there is near its object", "webhooks.url", 3},
		{"an index that is not there is near its list", "webhooks.rules[2]", 5},
		{"an index of an object", "webhooks[0]", 3},
		{"a field of a number", "webhooks.port.name", 4},
		{"nothing of the path is there", "listen.address", 0},
		{"the document", "", 0},
	} {
		if got := yamlline.Of([]byte(document), c.path); got != c.want {
			t.Errorf("%s: %s: line %d, want %d", c.reason, c.path, got, c.want)
		}
	}
	if got := yamlline.Of([]byte("a: [\n"), "a"); got != 0 {
		t.Errorf("no YAML: line %d", got)
	}
}

func ExampleOf() {
	fmt.Println(yamlline.Of([]byte("kind: Configuration\nlog:\n  level: loud\n"), "log.level"))
	// Output: 3
}

// TestReadable: no error about syntax names a parser.
func TestReadable(t *testing.T) {
	for _, c := range []struct{ reason, document, want string }{
		{"a list without an end", "a: [\n", "line 1: did not find expected node content"},
		{"a mapping in a value", "a: b: c\n", "mapping values are not allowed in this context"},
		{"a key that is set twice", "a: 1\nb: 2\na: 3\n", `line 3: key "a" already set in map`},
	} {
		_, err := sigsyaml.YAMLToJSONStrict([]byte(c.document))
		if err == nil || yamlline.Readable(err).Error() != c.want {
			t.Errorf("%s: %v, %v", c.reason, err, yamlline.Readable(err))
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add(document, "webhooks.rules[1].kinds[0]")
	f.Add("&a [*a]", "[0][0]")
	f.Fuzz(func(t *testing.T, document, path string) {
		if line := yamlline.Of([]byte(document), path); line < 0 {
			t.Errorf("line %d", line)
		}
	})
}
