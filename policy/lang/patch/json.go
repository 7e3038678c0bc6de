package patch

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/jsonvalue"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/operation"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/yamltemplate"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// JSON is a compiled patchesJson6902. It is immutable and safe for concurrent
// use.
type JSON struct{ operations []instruction }

// instruction is one operation as a policy writes it.
type instruction struct {
	op         string
	path, from location
	value      yamltemplate.Node
}

// location is a JSON pointer, with variables or read already.
type location struct {
	template *variable.Template
	tokens   []string
	at       string // in the policy
}

// CompileJSON reads patchesJson6902: a text of YAML or JSON, with {{ variables }} in it,
// quoted or not, or the equivalent list with strings that follow package variable. Errors
// are *variable.CompileError.
func CompileJSON(engine *jmespath.Engine, value any) (*JSON, error) {
	text, ok := value.(string)
	if !ok {
		normal, err := jmespath.Normalize(value)
		if err != nil {
			return nil, &variable.CompileError{Err: err}
		}
		return compileOperations(decoded{engine: engine}, normal)
	}
	document, err := yamltemplate.Read(engine, text)
	if err != nil {
		return nil, err
	}
	return compileOperations(document, document.Root)
}

// source compiles the parts of an operation. A text keeps the style of each scalar, a list
// does not.
type source interface {
	Value(raw any, at string) (yamltemplate.Node, error)
	Text(raw any, at string) (*variable.Template, error)
	Constant(raw any, at, want string) (string, error)
}

func compileOperations(r source, document any) (*JSON, error) {
	list, ok := document.([]any)
	switch {
	case !ok:
		return nil, wrong("", "want a list of operations, found %s", jsonvalue.KindOf(document))
	case len(list) == 0:
		return nil, wrong("", "want operations, found none")
	case len(list) > jsonvalue.MaxOperations:
		return nil, wrong("", "%d operations: %w of %d", len(list), jsonvalue.ErrTooLarge, jsonvalue.MaxOperations)
	}
	j := &JSON{operations: make([]instruction, len(list))}
	for i, item := range list {
		at := "/" + strconv.Itoa(i)
		members, ok := item.(map[string]any)
		if !ok {
			return nil, wrong(at, "want an operation, found %s", jsonvalue.KindOf(item))
		}
		compiled, err := compileOperation(r, members, at)
		if err != nil {
			return nil, err
		}
		j.operations[i] = compiled
	}
	return j, nil
}

func compileOperation(r source, members map[string]any, at string) (o instruction, err error) {
	o.op, err = r.Constant(members["op"], at+"/op", "add, remove, replace, move, copy or test")
	if err != nil {
		return o, err
	}
	o.path, err = compileLocation(r, members, at, "path")
	if err != nil {
		return o, err
	}
	other := ""
	switch o.op {
	case "add", "replace", "test":
		other = "value"
		raw, ok := members[other]
		if !ok {
			return o, wrong(at+"/value", "is missing: %s needs it", o.op)
		}
		o.value, err = r.Value(raw, at+"/value")
	case "move", "copy":
		other = "from"
		o.from, err = compileLocation(r, members, at, other)
	case "remove":
	default:
		err = wrong(at+"/op", "%q: want add, remove, replace, move, copy or test", o.op)
	}
	if err != nil {
		return o, err
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if key != "op" && key != "path" && key != other {
			return o, wrong(at+"/"+jsonvalue.Escape(key), "%s has no such field", o.op)
		}
	}
	return o, nil
}

func compileLocation(r source, members map[string]any, at, key string) (l location, err error) {
	l.at = at + "/" + key
	l.template, err = r.Text(members[key], l.at)
	if err != nil {
		return l, err
	}
	if !l.template.Plain() {
		return l, nil
	}
	pointer, err := l.template.Execute(nil)
	if err == nil {
		l.tokens, err = operation.Tokens(jmespath.Text(pointer))
	}
	if err != nil {
		return l, &variable.CompileError{Path: l.at, Err: err}
	}
	return l, nil
}

func (l location) read(data variable.Context) ([]string, error) {
	if l.tokens != nil || l.template == nil {
		return l.tokens, nil
	}
	pointer, err := l.template.Execute(data)
	if err != nil {
		return nil, err
	}
	parts, err := operation.Tokens(jmespath.Text(pointer))
	if err != nil {
		return nil, fmt.Errorf("patch %s: %w", l.at, err)
	}
	return parts, nil
}

// Apply applies the operations one after the other; if one fails, none is
// applied. A nil object is an empty one. An object that the patch does not change comes
// back as the same map. Errors are *Error, which wraps ErrTestFailed if an
// operation `test` fails, and *variable.Error.
func (j *JSON) Apply(data variable.Context, object map[string]any) (map[string]any, error) {
	return j.ApplyWithin(data, object, NewBudget())
}

// ApplyWithin is Apply within a Budget that other patches share.
func (j *JSON) ApplyWithin(data variable.Context, object map[string]any, budget *Budget) (map[string]any, error) {
	steps := make([]operation.Step, len(j.operations))
	for i, o := range j.operations {
		s := operation.Step{Op: o.op}
		var err error
		s.Path, err = o.path.read(data)
		if err != nil {
			return object, err
		}
		s.From, err = o.from.read(data)
		if err != nil {
			return object, err
		}
		if o.value != nil {
			s.Value, err = o.value.Value(data)
			if err != nil {
				return object, err
			}
		}
		steps[i] = s
	}
	result, at, err := operation.Run(steps, object, budget)
	if err != nil {
		return object, &Error{Path: at, Err: err}
	}
	return result, nil
}

// templated is a value with strings that follow package variable.
type templated struct{ template *variable.Template }

func (t templated) Value(data variable.Context) (any, error) { return t.template.Execute(data) }

// decoded is operations that are JSON already.
type decoded struct{ engine *jmespath.Engine }

func (r decoded) Value(raw any, at string) (yamltemplate.Node, error) {
	template, err := variable.CompileAt(r.engine, raw, at)
	if err != nil {
		return nil, err
	}
	return templated{template}, nil
}

func (r decoded) Text(raw any, at string) (*variable.Template, error) {
	if _, ok := raw.(string); !ok {
		return nil, wrong(at, "want a JSON pointer, found %s", jsonvalue.KindOf(raw))
	}
	return variable.CompileAt(r.engine, raw, at)
}

func (r decoded) Constant(raw any, at, want string) (string, error) {
	s, ok := raw.(string)
	if !ok {
		return "", wrong(at, "want %s, found %s", want, jsonvalue.KindOf(raw))
	}
	return s, nil
}

func wrong(at, format string, args ...any) error {
	return &variable.CompileError{Path: at, Err: fmt.Errorf(format, args...)}
}
