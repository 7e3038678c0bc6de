package jsonpatch

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/condition"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutation"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// Loop is an entry of foreach, which the compiler of the dialect has checked.
type Loop struct {
	List                string `json:"list"`
	Order               string `json:"order"`
	Context             []any  `json:"context"`
	Preconditions       any    `json:"preconditions"`
	PatchStrategicMerge any    `json:"patchStrategicMerge"`
	PatchesJSON6902     any    `json:"patchesJson6902"`
	ForEach             []Loop `json:"foreach"`
}

// Removals is which operations of a loop by pointers are removals.
type Removals byte

// The kinds of loops.
const (
	Nothing Removals = iota // it has none by pointers
	All
	Some
)

// Removes reports which operations are removals.
func (l Loop) Removes() Removals {
	out := Nothing
	for _, inner := range l.ForEach {
		out = max(out, inner.Removes())
	}
	text, isText := l.PatchesJSON6902.(string)
	if !isText {
		return out
	}
	list, _, err := steps(text)
	if err != nil || slices.ContainsFunc(list, func(s step) bool { return s.op != "remove" }) {
		return Some
	}
	return max(out, All)
}

// ForEach writes a loop with operations.
func ForEach(l Loop, scope jmespath.Scope, about Object) (*mutation.Written, error) {
	text, err := loopWriter{scope: scope, known: about.Known, shape: about.Shape}.loop(l)
	return &mutation.Written{Mutations: []mutation.Mutation{mutation.JSONPatch(text)}}, err
}

// loopWriter writes a loop within others.
type loopWriter struct {
	scope jmespath.Scope
	known bool
	shape shape.Shape // of the object
	loops []loop
}

// Element is what a merge for each element of a list reads.
type Element struct {
	// Path has the members from the object to the list.
	Path []string
	// Name is that of an element in expressions.
	Name string
	// Scope has its meaning.
	Scope jmespath.Scope
	// Condition must hold for an element; empty for all.
	Condition string
	// Fails: the source fails without the list.
	Fails bool
}

// Each reads the loop around a merge. The list must be one of the object.
func Each(l Loop, scope jmespath.Scope) (Element, error) {
	inner, _, condition, err := loopWriter{scope: scope}.open(l)
	if err != nil {
		return Element{}, err
	}
	now := inner.loops[0]
	if !now.isPath {
		return Element{}, &source.Unsupported{Path: "list", Found: "a list that is not the one of the patch"}
	}
	return Element{Path: now.tokens, Name: now.element, Scope: inner.scope, Condition: condition, Fails: now.fails}, nil
}

// open reads a list and its preconditions.
func (w loopWriter) open(l Loop) (inner loopWriter, text, held string, err error) {
	if len(l.Context) > 0 {
		return w, "", "", &source.Unsupported{Path: "context", Found: "has no form yet that is known to be equal"}
	}
	list, err := jmespath.Compile(l.List, w.scope)
	if err != nil {
		return w, "", "", mutation.Within("list", err)
	}
	text = list.Text
	if list.Optional {
		softly, _, ok := list.Softly("[]")
		if !ok || list.Missing {
			return w, "", "", &source.Unsupported{Path: "list", Found: "a list that may be null"}
		}
		text = softly
	}
	if list.Type != jmespath.List {
		return w, "", "", &source.Unsupported{Path: "list", Found: "a value that may be no list"}
	}
	inner = w.within(w.path(l.List, list))
	inner.loops[len(inner.loops)-1].fails = list.Missing
	if l.Preconditions == nil {
		return inner, text, "", nil
	}
	held, err = condition.Compile(l.Preconditions, inner.scope)
	if held == "true" {
		held = ""
	}
	return inner, text, held, mutation.Within("preconditions", err)
}

// loop writes one loop as a list of operations.
func (w loopWriter) loop(l Loop) (string, error) {
	if l.PatchStrategicMerge != nil {
		return "", &source.Unsupported{Path: "patchStrategicMerge", Found: "a merge in a loop in a loop"}
	}
	inner, text, held, err := w.open(l)
	if err != nil {
		return "", err
	}
	now := inner.loops[len(inner.loops)-1]
	head := text + ".transformList(" + now.index + ", " + now.element + ", "
	if held != "" {
		head += held + ", "
	}
	body, isOne, err := inner.body(l)
	if err != nil {
		return "", err
	}
	made := head + body + ")"
	if strings.Contains(body, "\n") {
		made = strings.TrimRight(head, " ") + "\n" + mutation.Indented(body) + "\n)"
	}
	if l.Order == "Descending" {
		made += ".reverse()"
	}
	if !isOne {
		made += ".flatten()"
	}
	return made, nil
}

// path is a list as it is in the object: one of objects is not changed by [] behind it.
func (w loopWriter) path(written string, list jmespath.Expression) jmespath.Expression {
	plain, flattened := strings.CutSuffix(strings.TrimSpace(written), "[]")
	if !flattened || list.Path != nil {
		return list
	}
	if as, err := jmespath.Compile(plain, w.scope); err == nil && !as.Shape.Element().May(shape.List) {
		list.Path = as.Path
	}
	return list
}

// within is the writer in a loop about a list.
func (w loopWriter) within(list jmespath.Expression) loopWriter {
	depth := len(w.loops)
	now := loop{element: "element", index: string("ijklm"[depth])}
	if list.Path != nil {
		direct := list.Path.Direct
		now.element = mutation.Singular(direct[strings.LastIndexAny(direct, ".]")+1:])
		now.tokens, now.isPath = w.tokens(direct)
	}
	for slices.ContainsFunc(w.loops, func(l loop) bool { return l.element == now.element }) {
		now.element += "s"
	}
	w.scope = w.scope.WithElement(now.element, list.Shape.Element(), depth)
	for _, name := range []string{"elementIndex", "elementIndex" + strconv.Itoa(depth)} {
		w.scope = w.scope.With(name, jmespath.Binding{Text: now.index, Shape: shape.OfNumber()})
	}
	w.loops = append(slices.Clone(w.loops), now)
	return w
}

// tokens are those of the pointer to a path of the object, or of the element of a loop.
func (w loopWriter) tokens(direct string) ([]string, bool) {
	parts := strings.Split(direct, ".")
	if strings.Contains(direct, "[") {
		return nil, false
	}
	if parts[0] == "object" {
		return parts[1:], true
	}
	i := slices.IndexFunc(w.loops, func(l loop) bool { return l.element == parts[0] })
	if i < 0 || !w.loops[i].isPath {
		return nil, false
	}
	return slices.Concat(w.loops[i].tokens, []string{elementMark + w.loops[i].index}, parts[1:]), true
}

// elementMark precedes the index of a loop in a token: the element of that loop.
const elementMark = "\x00"

// body writes the operations for an element; isOne says that it is one operation, and no list.
func (w loopWriter) body(l Loop) (text string, isOne bool, err error) {
	if len(l.ForEach) > 0 {
		if len(l.ForEach) > 1 {
			return "", false, &source.Unsupported{Path: "foreach", Found: "several loops in a loop"}
		}
		text, err := w.loop(l.ForEach[0])
		return text, false, mutation.Within("foreach[0]", err)
	}
	written, isText := l.PatchesJSON6902.(string)
	if !isText {
		return "", false, &source.Unsupported{Path: "patchesJson6902", Found: "a list in place of a text"}
	}
	list, v, err := steps(written)
	if err != nil {
		return "", false, mutation.Within("patchesJson6902", err)
	}
	now := &operations{scope: w.scope, variables: v, loops: w.loops, object: mutation.Root(), shape: w.shape}
	now.object.Known = w.known
	for _, s := range list {
		if s.op == "remove" && l.Order != "Descending" && now.isElement(s.path) {
			return "", false, &source.Unsupported{Path: "order", Found: "Ascending, with a removal of elements, after which the others have other indices"}
		}
		next := *now
		next.lists, next.paths = nil, nil
		if err := next.step(s); err != nil {
			return "", false, mutation.Within(source.Below("patchesJson6902", s.at), err)
		}
		if now.meets(&next) {
			return "", false, &source.Unsupported{Path: source.Below("patchesJson6902", s.at), Found: "an operation that depends on one before it"}
		}
		now.join(&next)
	}
	if len(now.lists) == 1 && strings.HasPrefix(now.lists[0], "[") {
		return strings.TrimSuffix(strings.TrimPrefix(now.lists[0], "["), "]"), true, nil
	}
	return mutation.Together(now.lists), false, nil
}

// isElement reports whether a pointer is to an element of a loop.
func (o *operations) isElement(pointer string) bool {
	last := pointer[strings.LastIndex(pointer, "/")+1:]
	return strings.Contains(last, mark) && o.loopOf(last) != "" || isIndex(last)
}
