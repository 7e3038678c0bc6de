package jmespath

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	jp "github.com/kyverno/go-jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/internal/function"
)

// Options are the external dependencies of an Engine.
type Options struct {
	// Now is the clock of the time functions; required.
	Now func() time.Time
	// Random is the source of random(); required. It is read from concurrently.
	Random io.Reader
	// Hosts resolves names for is_external_url(); without it only addresses
	// are judged and a name is an error.
	Hosts HostLookup
	// DefaultRegistry is the registry that image_normalize() adds to a reference without one;
	// empty means docker.io.
	DefaultRegistry string
}

// HostLookup resolves a host name to its addresses.
type HostLookup = function.HostLookup

// Engine compiles expressions. It is immutable and safe for concurrent use.
type Engine struct {
	options   Options
	functions map[string]function.Function
	library   *jp.FunctionCaller
	runs      *sync.Pool // of *run
	// comparators are the marks of comparisons by order.
	comparators map[any]string
	// foreign are the members of the data that a statement or an image brings; allForeign:
	// every one.
	foreign    []string
	allForeign bool
}

// New makes an Engine; it refuses options without a clock or randomness.
func New(options Options) (*Engine, error) {
	if options.Now == nil {
		return nil, errors.New("expressions: a clock is required")
	}
	if options.Random == nil {
		return nil, errors.New("expressions: a source of randomness is required")
	}
	if options.DefaultRegistry == "" {
		options.DefaultRegistry = "docker.io"
	}
	e := &Engine{options: options, library: jp.NewFunctionCaller(), runs: &sync.Pool{}, comparators: comparators()}
	e.functions = e.table()
	e.runs.New = e.newRun
	return e, nil
}

// Foreign returns an engine for data from a statement or an image, or with such data in the named
// members. There, an order comparison with null is indeterminate, too: otherwise the author of
// the data could choose the items that a comparison drops.
func (e *Engine) Foreign(names ...string) *Engine {
	changed := *e
	changed.allForeign = e.allForeign || len(names) == 0
	changed.foreign = append(slices.Clone(e.foreign), names...)
	return &changed
}

// reads reports whether a query reads foreign data.
func (e *Engine) reads(r roots) bool {
	return e.allForeign || len(e.foreign) > 0 && (r.any || slices.ContainsFunc(r.names, func(name string) bool { return slices.Contains(e.foreign, name) }))
}

// Query is a compiled expression. It is immutable and safe for concurrent use.
type Query struct {
	engine *Engine
	source string
	ast    jp.ASTNode
	slots  []slot // of the holes, in order; empty for most
	holes  int
	pays   bool // it has holes or calls
	// foreign: it reads data that a statement or an image brings.
	foreign bool
	roots   roots
	paths   [][]string // as readPaths has them
	members map[string][]string
	simple  simple
	// callsInside: a call is evaluated on the elements of a list or a map.
	callsInside bool
	// varies: it calls a function of the clock, of randomness or of the network.
	varies bool
}

// SyntaxError means that an expression cannot be compiled.
type SyntaxError struct {
	Expression string
	Err        error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("expression %q: %v", function.Shorten(e.Expression), e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// UndefinedError means that an expression names a missing key.
type UndefinedError struct {
	Expression string
	Err        error // names the key
}

func (e *UndefinedError) Error() string {
	return fmt.Sprintf("expression %q: %v", function.Shorten(e.Expression), e.Err)
}

func (e *UndefinedError) Unwrap() error { return e.Err }

// Compile parses an expression without holes. Errors are *SyntaxError.
func (e *Engine) Compile(expression string) (*Query, error) {
	return e.CompilePieces([]Piece{{Text: expression}})
}

// String returns the expression, with holes shown as {{0}}, {{1}}.
func (q *Query) String() string { return q.source }

// Foreign reports whether the query reads data that a statement or an image brings.
func (q *Query) Foreign() bool { return q.foreign }

// Varies reports whether the query may have another result for the same data: it calls a function of the clock, of
// randomness or of the network.
func (q *Query) Varies() bool { return q.varies }

// ExpressionHole returns the number of the first hole in the place of an expression, `length({{0}})`; false for none. Its
// value is data here, and in Kyverno the text of an expression.
func (q *Query) ExpressionHole() (int, bool) {
	for _, s := range q.slots {
		if s.kind == slotValue {
			return s.hole, true
		}
	}
	return 0, false
}

// OnForeign returns the query for foreign data.
func (q *Query) OnForeign() *Query {
	changed := *q
	changed.foreign = true
	return &changed
}

// Search evaluates the expression on data, with one value for each hole. The result may share
// memory with data and holes, which must not be modified. Data is JSON as encoding/json decodes
// it (see Normalize), with members that may be Deferred: the query loads those that it reads. A
// missing key is an *UndefinedError; too much work is ErrTooLarge; an order over values that have
// none is ErrNoOrder.
func (q *Query) Search(data any, holes ...any) (result any, err error) {
	if len(holes) != q.holes {
		return nil, fmt.Errorf("expression %q: want %d values for its holes, got %d", function.Shorten(q.source), q.holes, len(holes))
	}
	if q.simple.path != nil {
		if value, found, err := q.walk(data); found || err != nil {
			if err == nil {
				err = q.checked(value)
			}
			if err != nil {
				return nil, err
			}
			return value, nil
		}
	}
	data, absent, err := q.settle(data)
	if err != nil {
		return nil, err
	}
	// The library asserts types in a few places where foreign data decides them.
	defer func() {
		if r := recover(); r != nil {
			result, err = nil, fmt.Errorf("expression %q: cannot be evaluated on this data: %v", function.Shorten(q.source), r)
		}
	}()
	result, err = q.evaluate(data, holes)
	if missing := (jp.NotFoundError{}); errors.As(err, &missing) {
		if absent != nil {
			err = fmt.Errorf("%w: %w", err, absent)
		}
		return nil, &UndefinedError{Expression: q.source, Err: err}
	}
	if errors.Is(err, ErrNull) && !q.foreign && !q.callsInside {
		return nil, &AbsentError{Expression: q.source, Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", function.Shorten(q.source), err)
	}
	if err := q.checked(result); err != nil {
		return nil, err
	}
	return result, nil
}

// checked refuses a result that is too large.
func (q *Query) checked(result any) error {
	if err := checkResult(result); err != nil {
		return fmt.Errorf("expression %q: %w", function.Shorten(q.source), err)
	}
	return nil
}

// evaluate has the library interpret the tree, with a meter of its own if there is
// anything to pay for.
func (q *Query) evaluate(data any, holes []any) (any, error) {
	if !q.pays {
		return jp.NewInterpreter().Execute(q.ast, data, jp.WithFunctionCaller(q.engine.library))
	}
	r := q.engine.runs.Get().(*run)
	defer q.engine.runs.Put(r)
	r.meter, r.foreign = meter{left: maxWork}, q.foreign
	ast := q.ast
	if len(q.slots) > 0 {
		bound, err := q.bind(ast, holes, &r.meter)
		if err != nil {
			return nil, err
		}
		ast = bound
	}
	result, err := jp.NewInterpreter().Execute(ast, data, jp.WithFunctionCaller(r.caller))
	if err := cmp.Or(r.meter.over, r.meter.unknown); err != nil {
		return nil, err
	}
	return result, err
}

// brief keeps an error of a library readable that would print all of its input.
func brief(err error) error {
	if len(err.Error()) <= 1000 {
		return err
	}
	return errors.New(function.Shorten(err.Error()))
}

// Normalize returns value in the form that encoding/json decodes: each number a float64, []string
// and similar slices as []any. A value in that form is returned unchanged. Other types are an
// error.
func Normalize(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, string, float64:
		return v, nil
	case []any:
		return normalizeList(v)
	case map[string]any:
		return normalizeObject(v)
	case []string:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = item
		}
		return list, nil
	case map[string]string:
		object := make(map[string]any, len(v))
		for key, item := range v {
			object[key] = item
		}
		return object, nil
	default:
		if number, ok := toFloat(v); ok {
			return number, nil
		}
		return nil, fmt.Errorf("a %T is not JSON", value)
	}
}

// toFloat reads any of Go's number types but float64, and json.Number.
func toFloat(value any) (float64, bool) {
	switch v := value.(type) {
	case float32:
		return float64(v), true
	case int:
		return float64(v), true
	case int32:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint32:
		return float64(v), true
	case uint64:
		return float64(v), true
	case interface{ Float64() (float64, error) }:
		number, err := v.Float64()
		return number, err == nil
	}
	return 0, false
}

func normalizeList(list []any) (any, error) {
	var changed []any
	for i, item := range list {
		plain, err := Normalize(item)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		if changed == nil && !same(item, plain) {
			changed = append(make([]any, 0, len(list)), list[:i]...)
		}
		if changed != nil {
			changed = append(changed, plain)
		}
	}
	if changed != nil {
		return changed, nil
	}
	return list, nil
}

func normalizeObject(object map[string]any) (any, error) {
	var changed map[string]any
	for key, item := range object {
		plain, err := Normalize(item)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if same(item, plain) {
			continue
		}
		if changed == nil {
			changed = make(map[string]any, len(object))
			for k, v := range object {
				changed[k] = v
			}
		}
		changed[key] = plain
	}
	if changed != nil {
		return changed, nil
	}
	return object, nil
}
