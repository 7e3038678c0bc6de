package signature_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/signature"
)

// TestFunctions: each function is listed with a call that can be evaluated. Its results are in docs/expressions.md.
func TestFunctions(t *testing.T) {
	e, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range signature.Functions() {
		q, err := e.Compile(f.Example)
		if err != nil || f.Example == "" {
			t.Errorf("%s: %q: %v", f.Name, f.Example, err)
			continue
		}
		if f.Name == "x509_decode" { // the only one with data, since a certificate is long
			continue
		}
		got, err := q.Search(map[string]any{})
		text, _ := json.Marshal(got)
		if err != nil || string(text) == "null" {
			t.Errorf("%s: %s, %v", f.Example, text, err)
		}
	}
}

func TestTree(t *testing.T) {
	for expression, want := range map[string]string{
		"a.b || !c": "OrExpression\n  Subexpression\n    Field \"a\"\n    Field \"b\"\n  NotExpression\n    Field \"c\"\n",
		"a[].b":     "Projection\n  Flatten\n    Field \"a\"\n  Field \"b\"\n",
		"a[1:-1]":   "Projection\n  IndexExpression\n    Field \"a\"\n    Slice 1 -1 _\n  Identity\n",
		"a >= `1`":  "Comparator GTE\n  Field \"a\"\n  Literal 1\n",
	} {
		if got, err := signature.Tree(expression); err != nil || got != want {
			t.Errorf("%s: %v\n%s", expression, err, got)
		}
	}
	if _, err := signature.Tree("a..b"); err == nil {
		t.Error("no error")
	}
}

func Example() {
	f := signature.Functions()[0]
	fmt.Println(f.Name, f.Arguments, f.Example)
	// Output: abs [a number] abs(`-2`)
}
