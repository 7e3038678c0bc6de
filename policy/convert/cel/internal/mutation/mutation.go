package mutation

import (
	"errors"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// Mutation is an entry of mutations.
type Mutation struct {
	PatchType string      `json:"patchType"`
	Apply     *Expression `json:"applyConfiguration,omitempty"`
	JSONPatch *Expression `json:"jsonPatch,omitempty"`
}

// Expression is the expression of a mutation.
type Expression struct {
	Expression string `json:"expression"`
}

// Condition is an expression without which nothing is changed.
type Condition struct{ Name, Expression string }

// Written is the form of a patch.
type Written struct {
	// Conditions must hold for the patch to be made.
	Conditions []Condition
	// Mutations are made one after the other.
	Mutations []Mutation
	// ServerSide: some replace fields as a whole.
	ServerSide bool
}

// Apply is a mutation by a configuration.
func Apply(expression string) Mutation {
	return Mutation{PatchType: "ApplyConfiguration", Apply: &Expression{expression}}
}

// JSONPatch is a mutation by a list of operations.
func JSONPatch(expression string) Mutation {
	return Mutation{PatchType: "JSONPatch", JSONPatch: &Expression{expression}}
}

// Block writes entries, each on a line of its own, between an opening and a closing bracket.
func Block(open string, entries []string, closing string) string {
	if len(entries) == 0 {
		return open + closing
	}
	return open + "\n" + Indented(strings.Join(entries, ",\n")) + "\n" + closing
}

// Indented indents lines.
func Indented(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// Inline writes entries on one line if they are short, and else as Block does.
func Inline(open string, entries []string, closing string) string {
	const width = 80
	line := open + strings.Join(entries, ", ") + closing
	if strings.Contains(line, "\n") || len(line) > width {
		return Block(open, entries, closing)
	}
	return line
}

// Together joins lists of operations.
func Together(lists []string) string {
	if inner, is := strings.CutPrefix(lists[0], "("); is && len(lists) == 1 {
		return strings.TrimSuffix(inner, ")")
	}
	var single []string
	for _, one := range lists {
		inner, is := strings.CutPrefix(one, "[")
		if !is || strings.Contains(one, "\n]") && !strings.HasSuffix(one, "\n]") {
			return strings.Join(lists, " +\n")
		}
		single = append(single, strings.TrimSpace(strings.TrimSuffix(inner, "]")))
	}
	return Block("[", single, "]")
}

// Step writes an operation; one without a value has none.
func Step(op string, at Pointer, value string) string {
	entries := []string{"op: '" + op + "'", "path: " + at.String()}
	if value != "" {
		entries = append(entries, "value: "+value)
	}
	return "[" + Inline("JSONPatch{", entries, "}") + "]"
}

// Ensure makes a value where there is none.
func Ensure(to *[]string, at Place, empty string) {
	if at.Optional == "" {
		return
	}
	if one := Unless(at, empty); !slices.Contains(*to, one) {
		*to = append(*to, one)
	}
}

// Unless adds a value where there is none.
func Unless(at Place, value string) string {
	return "(" + at.Present() + " ? [] : " + Added(at, value) + ")"
}

// Added writes the operation that adds a value.
func Added(at Place, value string) string {
	return "[JSONPatch{op: 'add', path: " + at.Pointer.String() + ", value: " + value + "}]"
}

// Within puts a path before that of an error.
func Within(where string, err error) error {
	var found *source.Unsupported
	if errors.As(err, &found) {
		return &source.Unsupported{Path: source.Below(where, found.Path), Found: found.Found}
	}
	return err
}
