package fieldcheck_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/fieldcheck"
)

// counted is a schema of an object with any fields, which counts the look-ups.
type counted struct{ lookups *int }

func (c counted) Field(string) (fieldcheck.Schema, bool) { *c.lookups++; return nil, true }
func (c counted) Element() fieldcheck.Schema             { return nil }
func (c counted) IsMap() bool                            { return false }
func (c counted) ValueKind() fieldcheck.Kind             { return fieldcheck.Object }

func parse(t *testing.T, text string) ast.Expr {
	t.Helper()
	env, err := cel.NewEnv(cel.OptionalTypes())
	if err != nil {
		t.Fatal(err)
	}
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	return parsed.NativeRep().Expr()
}

// TestCost: each part of an expression, and each variable, is inferred once, however often it is read
// and however deep it is. Else a short policy would take the compiler's time.
func TestCost(t *testing.T) {
	nested := func(format string) string {
		text := "object.a == 1"
		for range 60 {
			text = fmt.Sprintf(format, text)
		}
		return text
	}
	const variables = 60
	roots := map[string]ast.Expr{"v0": parse(t, "object.a == 1")}
	for i := 1; i < variables; i++ {
		roots[fmt.Sprint("v", i)] = parse(t, strings.ReplaceAll("variables.vN && variables.vN && variables.vN", "N", fmt.Sprint(i-1)))
	}
	for name, text := range map[string]string{
		"variables that read others": "variables.v15 && variables.v15",
		"more than are followed":     "variables.v59 && variables.v59",
		"keys of maps":               nested("'k' in {'k': %s}"),
		"elements of lists":          nested("%s in [true]"),
		"an index":                   nested("{'k': %s}['k']"),
		"an optional":                nested("{'k': %s}[?'k'].orValue(true)"),
		"choices":                    nested("(%s ? true : false)"),
		"loops":                      strings.Repeat("[1].all(x, ", 20) + "object.a == 1" + strings.Repeat(")", 20),
	} {
		lookups, reads := 0, 0
		err := fieldcheck.Check(fieldcheck.Expression{
			Root: parse(t, text), Objects: []string{"object"}, Variables: "variables",
			Variable: func(name string) (ast.Expr, bool) { reads++; return roots[name], roots[name] != nil },
		}, []fieldcheck.Schema{counted{&lookups}})
		if err != nil || lookups > 1 || reads > 2*variables {
			t.Errorf("%s: %d look-ups, %d reads of variables: %v", name, lookups, reads, err)
		}
	}
}

func ExampleCheck() {
	env, err := cel.NewEnv()
	if err != nil {
		fmt.Println(err)
		return
	}
	parsed, _ := env.Parse("object.spec.replica > 1")
	fmt.Println(fieldcheck.Check(fieldcheck.Expression{Root: parsed.NativeRep().Expr(), Objects: []string{"object"}}, []fieldcheck.Schema{none{}}))
	// Output: undefined field "object.spec": no kind that the policy matches has it
}

// none is the schema of an object without fields.
type none struct{ counted }

func (none) Field(string) (fieldcheck.Schema, bool) { return nil, false }
