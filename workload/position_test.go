package workload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/workload"
)

// TestPosition: what stands at a position is the text that the pointer names.
func TestPosition(t *testing.T) {
	const image = "/spec/containers/0/image"
	for name, c := range map[string]struct {
		reason, input string
		object        int
		pointer, want string // want is the position, and what stands there
	}{
		"plain":          {"as most are", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: nginx\n", 0, image, "5:12 nginx"},
		"double quoted":  {"the quote is the first character", "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: \"ngi\\x6ex\"}]}\n", 0, image, `3:29 "ngi\x6ex"`},
		"single quoted":  {"the same", "apiVersion: v1\nkind: Pod\nspec:\n  containers: [{name: a, image: 'nginx'}]\n", 0, image, "4:33 'nginx'"},
		"folded":         {"the sign of the block", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: >-\n      nginx\n", 0, image, "5:12 >-"},
		"next line":      {"a value may follow its name below", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image:\n      nginx\n", 0, image, "6:7 nginx"},
		"wide":           {"a column is a character, not a byte", "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: '日本', image: nginx}]}\n", 0, image, "3:41 nginx"},
		"comments":       {"lines of comments count", "# one\n\napiVersion: v1\nkind: Pod # two\n# three\nspec:\n  containers:\n  # four\n  - image: nginx # five\n", 0, image, "9:12 nginx"},
		"windows":        {"a line ends at \\r\\n once", "apiVersion: v1\r\nkind: Pod\r\nspec:\r\n  containers:\r\n  - image: nginx\r\n", 0, image, "5:12 nginx"},
		"second":         {"of the file, not of the document", "---\napiVersion: v1\nkind: Pod\n---\n# empty\n---\napiVersion: v1\nkind: Pod\nspec: {containers: [{image: nginx}]}\n", 1, image, "9:29 nginx"},
		"separator text": {"a separator may have a comment", "apiVersion: v1\nkind: Pod\n--- # next\napiVersion: v1\nkind: Pod\nspec: {containers: [{image: nginx}]}\n", 1, image, "6:29 nginx"},
		"anchor":         {"the value stands behind its anchor", "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: &x !!str  nginx}]}\n", 0, image, "3:39 nginx"},
		"alias":          {"the text stands at the anchor", "apiVersion: v1\nkind: Pod\nmetadata: {annotations: {a: &x nginx}}\nspec: {containers: [{image: *x}]}\n", 0, image, "3:32 nginx"},
		"alias above":    {"the whole list is an alias", "apiVersion: v1\nkind: Pod\nx: &c\n- {image: nginx}\nspec: {containers: *c}\n", 0, image, "4:11 nginx"},
		"merge":          {"a member comes from another object", "apiVersion: v1\nkind: Pod\nx: &c {image: nginx}\nspec:\n  containers:\n  - <<: *c\n    name: a\n", 0, image, "3:15 nginx"},
		"merge list":     {"the one that has it", "apiVersion: v1\nkind: Pod\nx: &c {image: nginx}\ny: &d {name: b}\nspec:\n  containers:\n  - <<: [*d, *c]\n", 0, image, "3:15 nginx"},
		"item":           {"of a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n- apiVersion: v1\n  kind: Pod\n  spec: {containers: [{image: nginx}]}\n", 1, image, "7:31 nginx"},
		"typed item":     {"an item without a kind", "apiVersion: v1\nkind: PodList\nitems:\n- spec: {containers: [{image: nginx}]}\n", 0, image, "4:31 nginx"},
		"list in list":   {"lists hold lists", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items: [{apiVersion: v1, kind: Pod, spec: {containers: [{image: nginx}]}}]\n", 0, image, "6:67 nginx"},
		"escaped name":   {"pointers escape / and ~", "apiVersion: v1\nkind: Pod\nmetadata: {annotations: {a/b~c: nginx}}\n", 0, "/metadata/annotations/a~1b~0c", "3:33 nginx"},
		"the object":     {"begins at its first name", "# a\n---\n# b\napiVersion: v1\nkind: Pod\n", 0, "", "4:1 apiVersion"},
		"a list":         {"begins at its first element", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: nginx\n", 0, "/spec/containers", "5:3 - image"},
		"JSON":           {"one line", `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"image":"nginx"}]}}`, 0, image, `1:64 "nginx"`},
		"JSON, lines":    {"several lines", "\ufeff\n {\n\"apiVersion\":\"v1\",\"kind\":\"Pod\",\n\t\"spec\":{\"containers\":[{\"image\":\n \"nginx\"}]}}", 0, image, `5:2 "nginx"`},
		"JSON, second":   {"on the line of the first", `{"apiVersion":"v1","kind":"Pod"} {"apiVersion":"v1","kind":"Pod","x":"日本","spec":{"containers":[{"image":"nginx"}]}}`, 1, image, `1:106 "nginx"`},
		"JSON item":      {"of a list", "{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":[{},\n{\"spec\":{\"containers\":[{\"image\":\"nginx\"}]}}]}", 1, image, `2:33 "nginx"`},
		"odd line break": {"YAML's lines are not an editor's", "apiVersion: v1\nkind: Pod\nmetadata: {annotations: {a: \"x\u2028y\"}}\nspec: {containers: [{image: nginx}]}\n", 0, image, "4:29 nginx"},
	} {
		t.Run(name, func(t *testing.T) {
			object := read(t, c.input)[c.object]
			found, ok := object.Position(c.pointer)
			if !ok {
				t.Fatalf("%s: no position", c.reason)
			}
			line := strings.Split(c.input, "\n")[found.Line-1]
			rest := string([]rune(line)[found.Column-1:])
			_, text, _ := strings.Cut(c.want, " ")
			if got := fmt.Sprintf("%d:%d %s", found.Line, found.Column, rest[:min(len(rest), len(text))]); got != c.want || found.File != "test.yaml" {
				t.Errorf("%s: %s in %s, want %s", c.reason, got, found.File, c.want)
			}
		})
	}
}

// TestPositionsOfLongLines: positions in a line of many characters of several bytes, and behind it, are exact.
func TestPositionsOfLongLines(t *testing.T) {
	const items = 5_000
	var text strings.Builder
	text.WriteString("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[")
	columns := make([]int, items)
	column := len(text.String()) + 1
	for i := range columns {
		item := fmt.Sprintf("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"x\":\"日本%d\"}", i)
		columns[i], column = column, column+len([]rune(item))+1
		text.WriteString(item + ",")
	}
	text.WriteString("\n {\"apiVersion\":\"v1\",\"kind\":\"Pod\"}]}")
	objects := read(t, text.String())
	for i, want := range columns {
		if found, ok := objects[i].Position(""); !ok || found.Line != 1 || found.Column != want {
			t.Fatalf("item %d: %v, want column %d", i, found, want)
		}
	}
	if found, ok := objects[items].Position(""); !ok || found.Line != 2 || found.Column != 2 {
		t.Errorf("behind the line: %v", found)
	}
}

func TestNoPosition(t *testing.T) {
	const manifest = "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: nginx}]}\n"
	parsed, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"Pod"}`))
	if err != nil {
		t.Fatal(err)
	}
	object := one(t, manifest)
	changed, err := workload.Apply(object, []workload.Operation{{Op: "replace", Path: "/spec/containers/0/image", Value: "other"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reason, pointer string
		object          workload.Object
	}{
		"none":        {"there is no object", "", workload.Object{}},
		"parsed":      {"nobody read it from a file", "", parsed},
		"absent":      {"nothing is there", "/spec/containers/1", object},
		"no number":   {"a list has numbers", "/spec/containers/image", object},
		"below text":  {"a text has nothing in it", "/spec/containers/0/image/x", object},
		"no pointer":  {"it does not begin with /", "spec", object},
		"changed":     {"what stands there is not what was written", "/spec/containers/0/image", changed},
		"odd pointer": {"~ must be escaped", "/~", object},
	} {
		if at, ok := c.object.Position(c.pointer); ok {
			t.Errorf("%s: %s: %s", name, c.reason, at)
		}
	}
	if at, ok := changed.Position("/kind"); !ok || at.Line != 2 {
		t.Errorf("what a patch left alone is where it was: %s", at)
	}
}

func TestTemplate(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\n"
	objects := read(t, "---\n# Source: web/templates/a.yaml\n"+pod+"---\n# a note\n# Source: web/templates/b.yaml\n"+pod+"---\n"+pod+"# Source: late\n")
	for i, want := range []string{"web/templates/a.yaml", "web/templates/b.yaml", ""} {
		if got := objects[i].Template(); got != want {
			t.Errorf("object %d: %q, want %q", i, got, want)
		}
	}
	if got := one(t, "# Source: "+strings.Repeat("x", 5000)+"\n"+pod).Template(); len(got) != 512 {
		t.Errorf("%d bytes of a name are kept", len(got))
	}
}

// FuzzPosition: whatever is read has positions that are in the text, and every text is
// where it is said to be.
func FuzzPosition(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: Pod\nspec: &a {x: &b [1, *b0], <<: *c}\n", "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}]}",
		"apiVersion: v1\nkind: &k Pod\nx: !!str |\n  a\n  b\ny: *k\n? z\n: - - a\n", "a: &a {k: v}\napiVersion: v1\r\nkind: \"P\\\n  od\"\n<<: [*a, *a]\n", "\ufeffapiVersion: v1\nkind: Pod\n---\u2028\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		objects, err := workload.Read(strings.NewReader(string(input)), "f")
		if err != nil {
			return
		}
		lines := strings.Split(string(input), "\n")
		for _, object := range objects {
			for _, pointer := range pointers(object.Root(), "", 3) {
				at, ok := object.Position(pointer)
				if !ok {
					continue
				}
				if at.Line < 1 || at.Line > len(lines) || at.Column < 1 || at.Column > len([]rune(lines[at.Line-1]))+1 {
					t.Errorf("%s of %s is at %s, which is outside", pointer, object, at)
				}
			}
		}
	})
}

// pointers lists a value and what it holds.
func pointers(v workload.Value, at string, depth int) []string {
	all := []string{at}
	if depth == 0 {
		return all
	}
	for name, member := range v.Members() {
		all = append(all, pointers(member, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), depth-1)...)
	}
	for i, element := range v.Elements() {
		all = append(all, pointers(element, fmt.Sprintf("%s/%d", at, i), depth-1)...)
	}
	return all
}
