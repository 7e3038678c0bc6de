package celtext_test

import (
	"fmt"
	"testing"

	"github.com/google/cel-go/cel"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
)

func ExampleString() {
	fmt.Println(celtext.String("app"), celtext.String("it's"), celtext.String("a\nb"))
	// Output: 'app' "it's" "a\nb"
}

// TestString evaluates literals: each must be the text itself.
func TestString(t *testing.T) {
	env, err := cel.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	for reason, text := range map[string]string{
		"empty": "", "plain": "a b/c:d", "single quote": "it's", "double quote": `say "a"`, "both": `'"`, "backslash": `a\.b`, "line": "a\nb\r\t", "control": "\x00\x1f\x7f",
		"beyond ASCII": "é世\U0001F600\u2028\ufeff", "wildcards": "*?",
	} {
		made := celtext.String(text)
		tree, issues := env.Compile(made)
		if issues.Err() != nil {
			t.Errorf("%s: %s: %v", reason, made, issues.Err())
			continue
		}
		program, err := env.Program(tree)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := program.Eval(map[string]any{}); err != nil || got.Value() != text {
			t.Errorf("%s: %s is %v (%v), want %q", reason, made, got, err, text)
		}
	}
}

// TestIsField compiles each key that is a field after a dot. Words that CEL reserves are none,
// although cel-go takes some of them there: other implementations do not.
func TestIsField(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{
		"a": true, "_a9": true, "namespace": true, "inner": true,
		"in": false, "null": false, "true": false, "while": false, "9a": false, "a-b": false, "a.b": false, "a ": false, "a/b": false, "": false, "é": false,
	} {
		if got := celtext.IsField(key); got != want {
			t.Errorf("%q is a field: %t, want %t", key, got, want)
		}
		if _, issues := env.Compile("object." + key); want && issues.Err() != nil {
			t.Errorf("%q: %v", key, issues.Err())
		}
	}
}
