package jp

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/signature"
)

var update = flag.Bool("update", false, "write the table of docs/expressions.md")

// jp runs the command, and returns its output and its error.
func jp(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := New(command.Terminal{In: strings.NewReader(in), Out: &out, Err: &errs, Env: func(string) string { return "" }})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String() + errs.String(), err
}

func TestQuery(t *testing.T) {
	pod := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(pod, []byte("spec: {replicas: 3, containers: [{image: a}, {image: \"b\\e\"}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(t.TempDir(), "long.json")
	if err := os.WriteFile(long, []byte(`{"`+strings.Repeat("k", 2000)+`": 1, "a": 2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"a text is printed as it is", []string{"spec.containers[0].image", "-f", pod}, "a\n"},
		{"without what would change the terminal", []string{"spec.containers[1].image", "-f", pod}, "b\\x1b\n"},
		{"other values as JSON", []string{"spec.replicas", "-f", pod}, "3\n"},
		{"a list", []string{"spec.containers[].image | length(@)", "-f", pod}, "2\n"},
		{"in a format", []string{"spec.containers[0]", "-f", pod, "-o", "yaml"}, "image: a\n"},
		{"standard input", []string{"a", "-f", "-"}, "1\n"},
		{"JSON with a key that is too long for YAML", []string{"a", "-f", long}, "2\n"},
		{"no document", []string{"add('1Gi', '1Gi')"}, "2Gi\n"},
	} {
		if got, err := jp(t, "a: 1\n", append([]string{"query"}, c.args...)...); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.reason, got, err, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		reason string
		in     string
		args   []string
		want   string
	}{
		{"braces of a policy", "", []string{"query", "{{ a }}"}, "without {{ and }}"},
		{"syntax", "", []string{"query", "a..b"}, "SyntaxError"},
		{"too few arguments", "", []string{"parse", "add(`1`)"}, "add"},
		{"an unknown function", "", []string{"query", "ad(`1`)"}, "ad"},
		{"a key twice in JSON", `{"a": 1, "a": 2}`, []string{"query", "a", "-f", "-"}, "already set"},
		{"a key twice", "a: 1\na: 2\n", []string{"query", "a", "-f", "-"}, "already set"},
		{"no YAML", "a: b: c\n", []string{"query", "a", "-f", "-"}, "-f -: YAML: "},
		{"no file", "", []string{"query", "a", "-f", "nothing"}, "nothing"},
		{"a format", "", []string{"query", "a", "-o", "jsno"}, "did you mean json"},
		{"no such function", "", []string{"functions", "tim_add"}, "did you mean time_add?"},
		{"a document over the bound", strings.Repeat(" ", command.MaxDocument+1), []string{"query", "a", "-f", "-"}, "standard input"},
	} {
		if got, err := jp(t, c.in, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q\n%s", c.reason, err, c.want, got)
		}
	}
	got, err := jp(t, "a: {}\n", "query", "a.b.c", "-f", "-")
	if !errors.Is(err, command.Status(command.ExitError)) || !strings.Contains(got, `"b"`) {
		t.Errorf("an absent key: %v\n%s", err, got)
	}
}

func TestFunctions(t *testing.T) {
	got, err := jp(t, "", "functions", "merge", "x509_decode")
	if want := "merge(an object, ...)\n  merge(`{\"a\": 1}`, `{\"b\": 2}`) = {\"a\":1,\"b\":2}\nx509_decode(a string)\n  x509_decode(certificate)\n"; err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
	all, err := jp(t, "", "functions", "-o", "json")
	if err != nil || !strings.Contains(all, `"example": "to_upper('web')"`) {
		t.Errorf("%v\n%s", err, all)
	}
}

// TestPage keeps the table of docs/expressions.md.
func TestPage(t *testing.T) {
	const path, begin, end = "../../../docs/expressions.md", "-run TestPage -update -->\n", "<!-- end of functions -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", path)
	}
	want := before + begin + table(t) + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s differs from the functions: go test ./cmd/quaymaster/jp -run TestPage -update", path)
	}
}

func table(t *testing.T) string {
	t.Helper()
	engine, err := newEngine()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("\n| function | example | value |\n|---|---|---|\n")
	code := func(text string) string {
		if strings.Contains(text, "`") {
			return "`` " + text + " ``"
		}
		return "`" + text + "`"
	}
	for _, f := range signature.Functions() {
		call, value, _ := strings.Cut(example(engine, f), " = ")
		if slices.Contains([]string{"random", "time_now", "time_now_utc"}, f.Name) || value == "" {
			value = "another at each call"
		} else {
			value = code(value)
		}
		if f.Name == "x509_decode" {
			value = "the certificate's fields"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", code(spelled(f)), code(call), value)
	}
	return b.String() + "\n"
}
