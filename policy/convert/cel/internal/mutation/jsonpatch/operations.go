package jsonpatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutation"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// operations writes operations about an object, within loops.
type operations struct {
	scope     jmespath.Scope
	variables variables
	loops     []loop
	object    mutation.Place
	shape     shape.Shape
	// lists are what makes parents that are missing, and the operations.
	lists []string
	paths [][]string
	// reads: a value is read from the object.
	reads bool
}

// loop is a foreach around operations: the list with its tokens, the element and its index.
type loop struct {
	tokens         []string
	element, index string
	isPath         bool
	fails          bool // without the list
}

// Object describes the patched objects.
type Object struct {
	Shape shape.Shape
	// Known: the kind is Kubernetes' own.
	Known bool
}

// Operations writes patchesJson6902.
func Operations(value any, scope jmespath.Scope, about Object) (*mutation.Written, error) {
	text, ok := value.(string)
	if !ok {
		return nil, &source.Unsupported{Found: "a list in place of a text"}
	}
	list, v, err := steps(text)
	if err != nil {
		return nil, err
	}
	out := &mutation.Written{}
	var now *operations
	fresh := func() *operations {
		o := &operations{scope: scope, variables: v, object: mutation.Root(), shape: about.Shape}
		o.object.Known = about.Known
		return o
	}
	now = fresh()
	for _, s := range list {
		next := fresh()
		if err := next.step(s); err != nil {
			return nil, mutation.Within(s.at, err)
		}
		if now.meets(next) {
			if now.reads || next.reads {
				return nil, &source.Unsupported{Path: s.at, Found: "an operation with a variable that depends on one before it"}
			}
			out.Mutations = append(out.Mutations, mutation.JSONPatch(mutation.Together(now.lists)))
			now = next
			continue
		}
		now.join(next)
	}
	out.Mutations = append(out.Mutations, mutation.JSONPatch(mutation.Together(now.lists)))
	return out, nil
}

// meets reports whether one of the operations depends on another one: it is about the same value, one within
// it, or an element of the same list.
func (o *operations) meets(other *operations) bool {
	for _, a := range o.paths {
		for _, b := range other.paths {
			n := min(len(a), len(b))
			same := slices.Equal(a[:n], b[:n])
			if same && len(a) == len(b) && a[n-1] == "-" {
				continue // both are added at the end
			}
			if same || len(a) > 0 && isIndex(a[len(a)-1]) && len(b) >= len(a) && slices.Equal(a[:len(a)-1], b[:len(a)-1]) {
				return true
			}
		}
	}
	return false
}

func (o *operations) join(other *operations) {
	for _, one := range other.lists {
		if strings.Contains(one, " ? [] : ") && slices.Contains(o.lists, one) {
			continue // a parent that is made before
		}
		o.lists = append(o.lists, one)
	}
	o.paths, o.reads = append(o.paths, other.paths...), o.reads || other.reads
}

func isIndex(token string) bool {
	_, err := strconv.Atoi(token)
	return err == nil || token == "-"
}

// step writes one operation.
func (o *operations) step(s step) error {
	at, err := o.locate(s.path, "path", s.op == "add" || s.op == "move" || s.op == "copy")
	if err != nil {
		return err
	}
	var from mutation.Place
	if s.op == "move" || s.op == "copy" {
		from, err = o.locate(s.from, "from", false)
		if err != nil {
			return err
		}
	}
	switch s.op {
	case "add", "replace":
		value, err := o.value(s.value, "value")
		if err != nil {
			return err
		}
		o.lists = append(o.lists, mutation.Step(s.op, at.Pointer, value))
	case "remove":
		one := mutation.Step(s.op, at.Pointer, "")
		if present := at.Present(); present != "true" {
			one = "(" + present + " ? " + one + " : [])"
		}
		o.lists = append(o.lists, one)
	case "move", "copy":
		o.lists = append(o.lists, "[JSONPatch{op: '"+s.op+"', from: "+from.Pointer.String()+", path: "+at.Pointer.String()+"}]")
	default:
		return &source.Unsupported{Path: "op", Found: fmt.Sprintf("%q", s.op)}
	}
	return nil
}

// locate returns the place of a pointer, and makes its parents if they may be missing.
func (o *operations) locate(written, where string, adds bool) (mutation.Place, error) {
	at, of := o.object, o.shape
	tokens := strings.Split(strings.TrimPrefix(written, "/"), "/")
	o.paths = append(o.paths, tokens)
	for i, token := range tokens {
		final := i == len(tokens)-1
		next, inner, err := o.token(at, of, tokens[:i], token, final && adds)
		if err != nil {
			return at, mutation.Within(where, err)
		}
		at, of = next, inner
		if !final && adds {
			empty := "{}"
			if isIndex(tokens[i+1]) || strings.HasPrefix(tokens[i+1], mark) && o.isIndexOf(tokens[:i+1], tokens[i+1]) {
				empty = "[]"
			}
			made := at
			if token == "-1" { // of a list that is made before
				made.Pointer = append(slices.Clone(made.Pointer[:len(made.Pointer)-2]), mutation.Literal+"/-")
			}
			mutation.Ensure(&o.lists, made, empty)
		}
	}
	return at, nil
}

// isIndexOf reports whether a token is the index of a loop about the list at some tokens.
func (o *operations) isIndexOf(list []string, token string) bool {
	named := slices.Clone(list)
	for i, one := range named {
		if index := o.loopOf(one); strings.HasPrefix(one, mark) && index != "" {
			named[i] = elementMark + index
		}
	}
	return slices.ContainsFunc(o.loops, func(l loop) bool {
		return l.isPath && slices.Equal(l.tokens, named) && o.loopOf(token) == l.index
	})
}

// loopOf returns the index that a variable names; empty for another one.
func (o *operations) loopOf(token string) string {
	inner := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(o.variables.show(token), "{{"), "}}"))
	for depth, l := range o.loops {
		if inner == "elementIndex"+strconv.Itoa(depth) || inner == "elementIndex" && depth == len(o.loops)-1 {
			return l.index
		}
	}
	return ""
}

// token goes one step down.
func (o *operations) token(at mutation.Place, of shape.Shape, before []string, token string, appends bool) (mutation.Place, shape.Shape, error) {
	name := strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	switch {
	case strings.Contains(token, mark):
		return o.variable(at, of, before, token)
	case !of.May(shape.List):
		inner, _, _ := of.Field(name)
		next := at.At(name)
		next.Nil = next.Optional != "" && of.MayBeNil(name)
		return next, inner, nil
	case !of.Is(shape.List):
		if isIndex(token) {
			return at, of, &source.Unsupported{Found: fmt.Sprintf("%s, where there may be a list or an object", token)}
		}
		return at.At(name), shape.Unknown(), nil
	case token == "-" || token == "-1" && appends:
		next := at
		next.Nil = false
		next.Pointer = append(slices.Clone(at.Pointer), mutation.Literal+"/-")
		next.Path = append(slices.Clone(at.Path), "-")
		return next, of.Element(), nil
	case token == "-1":
		next := at
		next.Nil = false
		next.Pointer = at.Pointer.Element(at.Or("[{}]") + ".size() - 1")
		next.Optional = at.Or("[]") + ".last()"
		next.Direct, next.InElement = next.Optional+".value()", true
		next.Path = append(slices.Clone(at.Path), token)
		return next, of.Element(), nil
	case isIndex(token) && !strings.HasPrefix(token, "-"):
		next := at
		next.Nil = false
		base := at.Direct
		if at.Optional != "" {
			base = at.Optional
		}
		if at.Nil {
			base = "optional.ofNonZeroValue(" + at.Or("null") + ")"
		}
		next.Direct, next.Optional = at.Direct+"["+token+"]", base+"[?"+token+"]"
		if token == "0" && at.Optional == "" && len(at.Path) > 0 && at.Last() == "containers" {
			next.Optional = "" // every pod has a container
		}
		next.Pointer, next.InElement = append(slices.Clone(at.Pointer), mutation.Literal+"/"+token), true
		next.Path = append(slices.Clone(at.Path), token)
		return next, of.Element(), nil
	}
	return at, of, &source.Unsupported{Found: fmt.Sprintf("the index %s", token)}
}

// variable goes down to a member or an element that a variable names.
func (o *operations) variable(at mutation.Place, of shape.Shape, before []string, token string) (mutation.Place, shape.Shape, error) {
	if o.isIndexOf(before, token) {
		index := o.loopOf(token)
		i := slices.IndexFunc(o.loops, func(l loop) bool { return l.index == index })
		next := at
		next.Nil = false
		next.Direct, next.Optional, next.InElement = o.loops[i].element, "", true
		next.Pointer = at.Pointer.Element(index)
		return next, of.Element(), nil
	}
	written := o.variables.show(token)
	if of.May(shape.List) && o.loopOf(token) != "" {
		next := at
		next.Nil = false
		next.Pointer, next.InElement = at.Pointer.Element(o.loopOf(token)), true
		next.Direct, next.Optional = at.Direct+"["+o.loopOf(token)+"]", at.Direct+"[?"+o.loopOf(token)+"]"
		return next, of.Element(), nil
	}
	e, err := jmespath.Template(written, o.scope)
	if err != nil {
		return at, of, err
	}
	if e.Type != jmespath.String || e.Optional {
		return at, of, &source.Unsupported{Found: fmt.Sprintf("%q, which may be no text", written)}
	}
	o.reads = true
	next := at
	next.Nil = false
	next.Pointer = append(append(slices.Clone(at.Pointer), mutation.Literal+"/"), e.Text)
	next.Direct, next.Optional = at.Direct+"["+e.Text+"]", at.Direct+"[?"+e.Text+"]"
	next.Path = append(slices.Clone(at.Path), token)
	return next, shape.Unknown(), nil
}
