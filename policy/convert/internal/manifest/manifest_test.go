package manifest_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/internal/manifest"
	"github.com/quaymaster/quaymaster/workload"
)

func ExampleMarshal() {
	text, err := manifest.Marshal(struct {
		Name    string   `json:"name"`
		Message string   `json:"message"`
		Actions []string `json:"actions"`
	}{"a", "no", []string{"it's", "'a' in b", "!('a' in b)"}})
	fmt.Print(string(text), err)
	// Output:
	// name: a
	// message: "no"
	// actions:
	//   - it's
	//   - >-
	//     'a' in b
	//   - >-
	//     !('a' in b)
	// <nil>
}

// texts are those that a version of YAML reads as no text, or with other characters.
func texts() []string {
	all := []string{
		"", " ", "~", "null", "Null", "NULL", "nul", "=", "<<", "-", "- a", "?", "? a", ":", "a: b", "a:", "#", "a #b", "a#b", "'", "\"", "it's", "'a'", "'a' == 'b'", "!('a' == b)", "!a", "&a", "*a", "*", "|", ">", ">-",
		"%a", "@a", "`a`", "[a]", "[", "{a: b}", "{{a}}", "a, b", ",", "\\", "\\n", "---", "...", "--- a", "0", "1", "-1", "+1", "1.5", "1.", ".5", "1e3", "1E400", "0x1F", "0o17", "017", "08", "0b101", "1_000", "_1", "1:30",
		"190:20:30", "190:20:30.15", "1:61", ".inf", "-.Inf", "+.INF", ".nan", ".NaN", "2024-01-02", "2024-01-02T03:04:05Z", "2024-1-2 3:4:5", "a\nb", "a\n", "\na", "a\n\nb\n\n", " a", "a ", "\ta", "a\t", "  a\nb", "a\n  b", "a \nb",
		"a\r\nb", "\x00", "\x07", "\x7f", "\u0085", "\u2028", "\ufeff", "é", "世界", "\U0001F600", "'a\nb'", "'a' \n b", "# a\nb", " 'a'", "'a' ", "!a'\n", strings.Repeat("'a' ", 100) + "b", "a: 'b'", "'a': b # c",
	}
	for _, word := range []string{"y", "n", "yes", "no", "on", "off", "true", "false"} {
		all = append(all, word, strings.ToUpper(word), strings.ToUpper(word[:1])+word[1:])
	}
	return all
}

// TestTexts: our own loader, which reads as kubectl does, has each text back, as a value, in a list and as a key.
func TestTexts(t *testing.T) {
	for _, text := range texts() {
		check(t, text)
	}
}

func check(t *testing.T, text string) {
	t.Helper()
	want := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": text, "list": []any{text, "a"}, "keys": map[string]any{text: "a"}}}
	written, err := manifest.Marshal(want)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	objects, err := workload.ReadDocuments(strings.NewReader(string(written)), "test")
	if err != nil || len(objects) != 1 {
		t.Errorf("%q: %d documents, %v:\n%s", text, len(objects), err, written)
		return
	}
	if got := objects[0].Content(); !reflect.DeepEqual(got, want) {
		t.Errorf("%q is read as %v:\n%s", text, got["data"], written)
	}
}

// FuzzTexts: so does any other text.
func FuzzTexts(f *testing.F) {
	for _, text := range texts() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { check(t, strings.ToValidUTF8(text, "")) })
}
