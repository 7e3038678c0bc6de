package jmespath

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	jp "github.com/kyverno/go-jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/internal/function"
)

// Deferred is a member of a query's data that is found out when a query first reads
// it. Only members of the data itself may be Deferred, and no members of these.
type Deferred interface {
	// Value returns the value, the same every time. An *UndefinedError means that the
	// member is not there; a query may have something in its place. Any other error
	// is the query's.
	Value() (any, error)
}

// Partial is a Deferred of which not every member is known.
type Partial interface {
	Deferred
	// Unknown returns the reason why the value at a path of member names, or a part of it, is
	// unknown; nil if it is known or absent. The empty path is the whole value. The query fails
	// with this error, even if it has a default for absent values.
	Unknown(path []string) error
}

// Selective is a Partial that reads members one by one: a query that names its members is not
// charged for the others.
type Selective interface {
	Partial
	// Member returns a member of the value; false where it is absent. Where Unknown has an
	// error for it, the result is not used.
	Member(name string) (any, bool)
}

// Roots returns which members of its data a query reads, sorted; false if it may
// read any, as one that names them by a hole does.
func (q *Query) Roots() ([]string, bool) { return q.roots.names, !q.roots.any }

// roots are the reads of a query in its data.
type roots struct {
	names []string
	any   bool
}

func rootsOf(ast jp.ASTNode) roots {
	var r roots
	r.whole(ast, true)
	slices.Sort(r.names)
	r.names = slices.Compact(r.names)
	return r
}

// whole records that the whole value of a node is used.
func (r *roots) whole(node jp.ASTNode, at bool) {
	if r.read(node, at) {
		r.any = true
	}
}

// read analyses a node that is evaluated on the data itself, or on a part of it, and reports
// whether its value is the data itself.
func (r *roots) read(node jp.ASTNode, at bool) bool {
	c := node.Children
	switch node.NodeType {
	case jp.ASTLiteral, jp.ASTIndex, jp.ASTSlice, jp.ASTEmpty:
		return false
	case jp.ASTIdentity, jp.ASTCurrentNode:
		return at
	case jp.ASTField:
		if at {
			r.field(node)
		}
		return false
	case jp.ASTSubexpression, jp.ASTPipe, jp.ASTIndexExpression:
		return r.read(c[1], r.read(c[0], at))
	case jp.ASTOrExpression, jp.ASTAndExpression:
		first, second := r.read(c[0], at), r.read(c[1], at)
		return first || second
	case jp.ASTExpRef: // is evaluated on what a list holds
		r.whole(c[0], false)
		return false
	case jp.ASTProjection, jp.ASTValueProjection, jp.ASTFilterProjection:
		r.whole(c[0], at)
		for _, child := range c[1:] {
			r.whole(child, false)
		}
		return false
	}
	for _, child := range c { // functions, operators, lists and hashes
		r.whole(child, at)
	}
	return false
}

func (r *roots) field(node jp.ASTNode) {
	name, ok := node.Value.(string)
	if !ok || strings.ContainsRune(name, markOpen) {
		r.any = true
		return
	}
	r.names = append(r.names, name)
}

// simple is an expression that needs no library: a chain of names, and a default for a missing or
// an empty value, as in a.b || 'c'.
type simple struct {
	path     []string // nil for all other expressions
	fallback any
	or       bool
}

func simpleOf(node jp.ASTNode) simple {
	if node.NodeType != jp.ASTOrExpression {
		return simple{path: plainPath(node)}
	}
	path, second := plainPath(node.Children[0]), node.Children[1]
	text, _ := second.Value.(string)
	if second.NodeType != jp.ASTLiteral || strings.ContainsRune(text, markOpen) {
		return simple{}
	}
	return simple{path: path, fallback: second.Value, or: true}
}

// value is the value found, or its default; false if the library must decide.
func (s simple) value(found any) (any, bool) {
	if !s.or {
		return found, true
	}
	switch v := found.(type) {
	case string:
		if v == "" {
			return s.fallback, true
		}
		return v, true
	case float64:
		return v, true
	case bool:
		if !v {
			return s.fallback, true
		}
		return v, true
	case nil:
		return s.fallback, true
	}
	return nil, false
}

// plainPath returns the names of a tree that is a chain of names, as in a.b.c; nil
// for all others.
func plainPath(node jp.ASTNode) []string {
	switch node.NodeType {
	case jp.ASTField:
		if name, _ := node.Value.(string); !strings.ContainsRune(name, markOpen) {
			return []string{name}
		}
	case jp.ASTSubexpression:
		if first, second := plainPath(node.Children[0]), plainPath(node.Children[1]); first != nil && second != nil {
			return append(first, second...)
		}
	}
	return nil
}

// walk evaluates a simple expression without the library. False means that the library has
// the last word: something is missing or is no object.
func (q *Query) walk(data any) (any, bool, error) {
	var one Selective // the member of the data, where the next name selects of it
	for i, name := range q.simple.path {
		object, ok := data.(map[string]any)
		switch {
		case one != nil:
			data, ok = one.Member(name)
			one = nil
		case !ok:
			return nil, false, nil
		default:
			data, ok = object[name]
		}
		if !ok {
			return q.simple.fallback, q.simple.or, nil
		}
		if selective, is := data.(Selective); is && i+1 < len(q.simple.path) {
			if err := unknown(selective, q.simple.path[i+1:]); err != nil {
				return nil, false, q.failed(err)
			}
			one = selective
			continue
		}
		if d, late := data.(Deferred); late {
			value, err := d.Value()
			switch {
			case err != nil && q.simple.or && isUndefined(err):
				return q.simple.fallback, true, nil
			case err != nil:
				return nil, false, q.missing(name, err)
			}
			if err := unknown(d, q.simple.path[i+1:]); err != nil {
				return nil, false, q.failed(err)
			}
			data = value
		}
	}
	value, known := q.simple.value(data)
	return value, known, nil
}

// missing is the error for a Deferred that has no value.
func (q *Query) missing(name string, err error) error {
	err = fmt.Errorf("%s: %w", name, err)
	if isUndefined(err) {
		return &UndefinedError{Expression: q.source, Err: err}
	}
	return q.failed(err)
}

func (q *Query) failed(err error) error {
	return fmt.Errorf("expression %q: %w", function.Shorten(q.source), err)
}

func isUndefined(err error) bool {
	_, undefined := errors.AsType[*UndefinedError](err)
	return undefined
}

// settle returns data with the members that the query reads loaded, and the errors of absent
// ones. Data without deferred members is returned unchanged.
func (q *Query) settle(data any) (any, error, error) {
	object, ok := data.(map[string]any)
	if !ok || !q.late(object) {
		return data, nil, nil
	}
	settled := make(map[string]any, len(q.roots.names))
	var absent error
	settle := func(name string, value any) error {
		d, late := value.(Deferred)
		if !late {
			settled[name] = value
			return nil
		}
		value, err := q.valueOf(name, d)
		switch {
		case err == nil:
			if err := q.unknown(name, d); err != nil {
				return q.failed(err)
			}
			settled[name] = value
		case isUndefined(err):
			absent = errors.Join(absent, fmt.Errorf("%s: %w", name, err))
		default:
			return q.missing(name, err)
		}
		return nil
	}
	if q.roots.any {
		for name, value := range object {
			if err := settle(name, value); err != nil {
				return nil, nil, err
			}
		}
		return settled, absent, nil
	}
	for _, name := range q.roots.names {
		if value, ok := object[name]; ok {
			if err := settle(name, value); err != nil {
				return nil, nil, err
			}
		}
	}
	return settled, absent, nil
}

// valueOf returns the value of a Deferred, or of a Selective the members that are read.
func (q *Query) valueOf(name string, d Deferred) (any, error) {
	members := q.members[name]
	selective, is := d.(Selective)
	if !is || members == nil {
		return d.Value()
	}
	value := make(map[string]any, len(members))
	for _, member := range members {
		if of, ok := selective.Member(member); ok {
			value[member] = of
		}
	}
	return value, nil
}

// late reports whether the query reads a member that is Deferred.
func (q *Query) late(object map[string]any) bool {
	if q.roots.any {
		for _, value := range object {
			if _, ok := value.(Deferred); ok {
				return true
			}
		}
		return false
	}
	for _, name := range q.roots.names {
		if _, ok := object[name].(Deferred); ok {
			return true
		}
	}
	return false
}
