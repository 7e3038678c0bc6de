// Package variable resolves variables, `{{ expression }}`, in the values of a policy.
//
// The syntax is Kyverno's ("Variables", 1.19): a string that is one variable becomes its value,
// whatever its type; in a longer string a value that is no string reads as JSON; variables nest,
// `{{ keys.data.{{request.namespace}} }}`; `\{{` is a plain `{{`. References to a policy's own
// fields, `$(./../x)`, belong to patterns and stay unchanged.
//
// There are two differences, both for safety. A value is data: the package neither resolves
// variables in it nor pastes it into an expression's text, so that labels and attestations cannot
// inject policy code. An unclosed `{{` is an error and not text.
package variable

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

const (
	// maxDepth bounds objects and lists in one another, and variables in
	// variables; the API server stops at 10,000, policies at about 20.
	maxDepth = 200
	// maxText bounds a string that variables are filled into.
	maxText = 2 << 20
)

// Context is what expressions are evaluated on: JSON as encoding/json decodes
// it, such as {"request": {...}, "images": {...}}. It is not modified. A member may be
// Deferred, and is then found out when the first expression reads it.
type Context map[string]any

// Template is a value with variables, compiled. It is immutable and safe for
// concurrent use.
type Template struct {
	root  node
	plain bool
}

// Error is the failure of one variable with its path.
type Error struct {
	Variable string // as in the policy, without braces
	Path     string // in the template, such as /all/0/key
	Err      error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: variable {{%s}}: %v", at(e.Path), e.Variable, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// CompileError is a fault of a template with its position.
type CompileError struct {
	Path string
	Err  error
}

func (e *CompileError) Error() string { return at(e.Path) + ": " + e.Err.Error() }

func (e *CompileError) Unwrap() error { return e.Err }

func at(path string) string {
	if path == "" {
		return "value"
	}
	return path
}

// Compile reads a value with variables in its strings and keys. Errors are
// *CompileError. The value must not be modified afterwards.
func Compile(engine *jmespath.Engine, value any) (*Template, error) {
	return CompileAt(engine, value, "")
}

// CompileAt is Compile for a value inside a larger one: path, such as /all/0/key,
// is put before the paths in errors.
func CompileAt(engine *jmespath.Engine, value any, path string) (*Template, error) {
	value, err := jmespath.Normalize(value)
	if err != nil {
		return nil, &CompileError{Path: path, Err: err}
	}
	root, err := compiler{engine: engine}.compile(value, path, 0)
	if err != nil {
		return nil, err
	}
	_, plain := root.(constant)
	return &Template{root: root, plain: plain}, nil
}

// Plain reports whether the template has no variable, so that Execute returns the compiled value,
// at no cost.
func (t *Template) Plain() bool { return t.plain }

// Outside returns what a text has outside of its variables; of a value that is no text it
// returns nothing.
func (t *Template) Outside() (written string) {
	parts := []node{t.root}
	if several, ok := t.root.(text); ok {
		parts = several.parts
	}
	for _, part := range parts {
		plain, ok := part.(constant)
		if s, isText := plain.value.(string); ok && isText {
			written += s
		}
	}
	return written
}

// Piece is a part of a text that was filled in.
type Piece struct {
	Text string
	// FromVariable: the text is the value of a variable, not written in the template.
	FromVariable bool
}

// Pieces resolves the variables of a text, and separates their values from the literal text.
// Errors are those of Execute. A value that is no text is one piece.
func (t *Template) Pieces(ctx Context) ([]Piece, error) {
	parts := []node{t.root}
	if several, ok := t.root.(text); ok {
		parts = several.parts
	}
	pieces, size := make([]Piece, 0, len(parts)), 0
	for _, part := range parts {
		value, err := part.execute(ctx)
		if err != nil {
			return nil, err
		}
		_, written := part.(constant)
		pieces = append(pieces, Piece{Text: jmespath.Text(value), FromVariable: !written})
		size += len(pieces[len(pieces)-1].Text)
		if size > maxText {
			return nil, &Error{Err: fmt.Errorf("the text %w of %d bytes", jmespath.ErrTooLarge, maxText)}
		}
	}
	return pieces, nil
}

// Execute resolves the variables. Errors are *Error; one that wraps a *jmespath.UndefinedError
// means that a variable does not exist. The result may share memory with the template and the
// context.
func (t *Template) Execute(ctx Context) (any, error) {
	return t.root.execute(ctx)
}

// node is a part of a template.
type node interface {
	execute(ctx Context) (any, error)
	reads(r *reading)
}

// reading are members of the context that are read.
type reading struct {
	names []string
	any   bool
	// foreign: one of them is what a statement or an image brings.
	foreign bool
	// varies: the result differs for the same data, as that of the clock.
	varies bool
}

func foreign(nodes []node) bool {
	var r reading
	for _, n := range nodes {
		n.reads(&r)
	}
	return r.foreign
}

func (r *reading) sorted() ([]string, bool) {
	slices.Sort(r.names)
	return slices.Compact(r.names), !r.any
}

type constant struct{ value any }

func (c constant) execute(Context) (any, error) { return c.value, nil }

func (c constant) reads(*reading) {}

type list []node

func (l list) execute(ctx Context) (any, error) {
	result := make([]any, len(l))
	for i, item := range l {
		value, err := item.execute(ctx)
		if err != nil {
			return nil, err
		}
		result[i] = value
	}
	return result, nil
}

func (l list) reads(r *reading) {
	for _, item := range l {
		item.reads(r)
	}
}

// object keeps its members in the order of their keys, so that errors are the
// same every time.
type object []member

type member struct {
	key   node
	value node
	path  string
}

func (o object) execute(ctx Context) (any, error) {
	result := make(map[string]any, len(o))
	for _, m := range o {
		name, err := m.key.execute(ctx)
		if err != nil {
			return nil, err
		}
		key := jmespath.Text(name)
		if _, twice := result[key]; twice {
			return nil, &Error{Variable: key, Path: m.path, Err: fmt.Errorf("the key %q is there twice", key)}
		}
		result[key], err = m.value.execute(ctx)
		if err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (o object) reads(r *reading) {
	for _, m := range o {
		m.key.reads(r)
		m.value.reads(r)
	}
}

// text is a string around variables.
type text struct {
	parts []node
	path  string
}

func (t text) execute(ctx Context) (any, error) {
	var out strings.Builder
	for _, part := range t.parts {
		value, err := part.execute(ctx)
		if err != nil {
			return nil, err
		}
		out.WriteString(jmespath.Text(value))
		if out.Len() > maxText {
			return nil, &Error{Path: t.path, Err: fmt.Errorf("the text %w of %d bytes", jmespath.ErrTooLarge, maxText)}
		}
	}
	return out.String(), nil
}

func (t text) reads(r *reading) {
	for _, part := range t.parts {
		part.reads(r)
	}
}

// variable is an expression with the variables in it.
type variable struct {
	query  *jmespath.Query
	holes  []node
	source string
	path   string
}

func (v variable) reads(r *reading) {
	for _, hole := range v.holes {
		hole.reads(r)
	}
	names, all := v.query.Roots()
	r.names, r.any, r.foreign = append(r.names, names...), r.any || !all, r.foreign || v.query.Foreign()
	r.varies = r.varies || v.query.Varies()
}

func (v variable) execute(ctx Context) (any, error) { return v.on(map[string]any(ctx), ctx) }

// on evaluates the expression on data.
func (v variable) on(data any, ctx Context) (any, error) {
	var values []any
	for _, hole := range v.holes {
		value, err := hole.execute(ctx)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	value, err := v.query.Search(data, values...)
	if err != nil {
		return nil, &Error{Variable: v.source, Path: v.path, Err: err}
	}
	return value, nil
}

type compiler struct{ engine *jmespath.Engine }

func (c compiler) compile(value any, path string, depth int) (node, error) {
	if depth > maxDepth {
		return nil, &CompileError{Path: path, Err: fmt.Errorf("nesting %w of %d", jmespath.ErrTooLarge, maxDepth)}
	}
	switch v := value.(type) {
	case string:
		return c.compileText(v, path)
	case []any:
		return c.compileList(v, path, depth)
	case map[string]any:
		return c.compileObject(v, path, depth)
	}
	return constant{value}, nil
}

func (c compiler) compileList(items []any, path string, depth int) (node, error) {
	compiled, plain := make(list, len(items)), true
	for i, item := range items {
		n, err := c.compile(item, path+"/"+strconv.Itoa(i), depth+1)
		if err != nil {
			return nil, err
		}
		plain = plain && isSame(n, item)
		compiled[i] = n
	}
	if plain {
		return constant{items}, nil
	}
	return compiled, nil
}

func (c compiler) compileObject(members map[string]any, path string, depth int) (node, error) {
	compiled, plain := make(object, 0, len(members)), true
	for _, key := range slices.Sorted(maps.Keys(members)) {
		place := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		name, err := c.compileText(key, place)
		if err != nil {
			return nil, err
		}
		n, err := c.compile(members[key], place, depth+1)
		if err != nil {
			return nil, err
		}
		plain = plain && isSame(name, key) && isSame(n, members[key])
		compiled = append(compiled, member{key: name, value: n, path: place})
	}
	if plain {
		return constant{members}, nil
	}
	return compiled, nil
}

// isSame reports whether n gives back the very value that it was compiled
// from: an escaped string is constant and yet another one.
func isSame(n node, value any) bool {
	c, ok := n.(constant)
	if !ok {
		return false
	}
	if s, ok := value.(string); ok {
		return c.value == s
	}
	return true
}
