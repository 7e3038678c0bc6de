package variable

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// Deferred is a member of a Context that is found out when the first expression reads
// it, and at most once. It is safe for concurrent use.
type Deferred struct {
	once    sync.Once
	find    func() (any, error)
	unknown func(value any, path []string) error // nil: all of it is known
	value   any
	err     error
}

var _ jmespath.Partial = (*Deferred)(nil)

// Defer creates a Deferred. Find returns JSON (see Context), or the error for the member. A
// *jmespath.UndefinedError means that the member is absent, and an expression may have a default
// for it, as in `a || b`; every other error fails the expression. Find must not read the member
// itself.
func Defer(find func() (any, error)) *Deferred { return &Deferred{find: find} }

// DeferPartial creates a Deferred with unknown members: unknown returns the reason why the value
// at a path of member names, or a part of it, is unknown; nil if it is known or absent. An
// expression that reads an unknown value fails, even if it has a default for absent values.
// Unknown is called with the value that find returned.
func DeferPartial(find func() (any, error), unknown func(value any, path []string) error) *Deferred {
	return &Deferred{find: find, unknown: unknown}
}

// Unknown implements jmespath.Partial.
func (d *Deferred) Unknown(path []string) error {
	value, err := d.Value()
	if err != nil || d.unknown == nil {
		return err
	}
	return d.unknown(value, path)
}

// Value calls find, unless its result is cached.
func (d *Deferred) Value() (any, error) {
	d.once.Do(func() {
		d.err = errUnfound // stays if find panics: a caller that recovers must not read null
		d.value, d.err = d.find()
	})
	return d.value, d.err
}

// Settle finds the value out.
func (d *Deferred) Settle() error {
	_, err := d.Value()
	return err
}

// settler is a member of a context that is found out later.
type settler interface{ Settle() error }

var errUnfound = errors.New("internal error, which is a defect: finding it out ended in a panic")

// With returns a context in which a name means something else.
func (c Context) With(name string, value any) Context {
	changed := make(Context, len(c)+1)
	for key, member := range c {
		changed[key] = member
	}
	changed[name] = value
	return changed
}

// Settle finds every member out, so that the context can be used where nothing may
// fail later. It returns the first error by name; that a member is not there is none.
func (c Context) Settle() error {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		d, ok := c[name].(settler)
		if !ok {
			continue
		}
		err := d.Settle()
		if _, absent := errors.AsType[*jmespath.UndefinedError](err); err != nil && !absent {
			return err
		}
	}
	return nil
}

// Expression is one expression with variables in it, compiled. It is immutable and
// safe for concurrent use.
type Expression struct{ variable variable }

// CompileExpression reads an expression as it stands between braces. Errors are
// *CompileError.
func CompileExpression(engine *jmespath.Engine, source, path string) (*Expression, error) {
	p := parser{engine: engine, text: "{{" + source + "}}", path: path}
	n, err := p.variable(0)
	if err == nil && p.pos != len(p.text) {
		err = errUnbalanced
	}
	if err != nil {
		return nil, &CompileError{Path: path, Err: err}
	}
	return &Expression{variable: n.(variable)}, nil
}

// Evaluate evaluates the expression on the context. Errors are as of
// Template.Execute.
func (e *Expression) Evaluate(ctx Context) (any, error) { return e.variable.execute(ctx) }

// EvaluateOn evaluates it on data, with the variables in it filled in from the
// context.
func (e *Expression) EvaluateOn(data any, ctx Context) (any, error) { return e.variable.on(data, ctx) }

// Failed reports whether an error of Evaluate or EvaluateOn is of the expression itself, and
// not of a variable in it.
func (e *Expression) Failed(err error) bool {
	failed, ok := errors.AsType[*Error](err)
	return ok && failed.Variable == e.variable.source
}

// Reads returns which members of the context a template reads, sorted; false if it
// may read any.
func (t *Template) Reads() ([]string, bool) {
	var r reading
	t.root.reads(&r)
	return r.sorted()
}

// Foreign reports whether the template reads data that a statement or an image brings (see
// jmespath.Engine.Foreign).
func (t *Template) Foreign() bool { return foreign([]node{t.root}) }

// Foreign reports the same of an expression.
func (e *Expression) Foreign() bool { return foreign([]node{e.variable}) }

// ReadsOnly reports whether the expression reads data of the context, and all of it at or below a
// path of names. An expression with variables in it may read anything.
func (e *Expression) ReadsOnly(path ...string) bool {
	paths := e.variable.query.Paths()
	return len(e.variable.holes) == 0 && len(paths) > 0 && !slices.ContainsFunc(paths, func(read []string) bool {
		return len(read) < len(path) || !slices.Equal(read[:len(path)], path)
	})
}

// Reads returns the members of the context that the expression reads, and false if it may read
// any. On means that it is evaluated on other data, so that only its variables read the context.
func (e *Expression) Reads(on bool) ([]string, bool) {
	var r reading
	if on {
		for _, hole := range e.variable.holes {
			hole.reads(&r)
		}
	} else {
		e.variable.reads(&r)
	}
	return r.sorted()
}
