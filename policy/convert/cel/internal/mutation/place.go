package mutation

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
)

// Place is the location of a value.
type Place struct {
	// Direct reads the value where it is there, and Optional where it may not be; Optional is empty
	// for a value that is sure to be there.
	Direct, Optional string
	// Object is the type of a part of a configuration: Object.spec.
	Object string
	// Pointer is its JSON pointer.
	Pointer Pointer
	// Path has the members from the object, without the elements of lists.
	Path []string
	// InElement: it is in an element of a list.
	InElement bool
	// List is the list of the element, and Selector what an element must meet to be written; empty for all.
	List     *Place
	Selector string
	// Nil: a value that is there may be null, as the API server writes an empty list without omitempty.
	Nil bool
	// Known: the kind is Kubernetes' own, so that members are sure to be there.
	Known bool
}

// Root is the whole object.
func Root() Place { return Place{Direct: "object", Object: "Object"} }

// Pointer has the parts of a JSON pointer as expressions.
type Pointer []string

// Literal begins a part that is a text, and no expression.
const Literal = "="

// Add appends a member.
func (p Pointer) Add(key string) Pointer {
	p = append(slices.Clone(p), Literal+"/")
	if strings.ContainsAny(key, "/~") {
		return append(p, "jsonpatch.escapeKey("+celtext.String(key)+")")
	}
	return append(p, Literal+key)
}

// Element appends an element by the expression for its index.
func (p Pointer) Element(index string) Pointer {
	return append(slices.Clone(p), Literal+"/", "string("+index+")")
}

// String is the expression.
func (p Pointer) String() string {
	var parts []string
	text := ""
	for _, part := range p {
		if more, is := strings.CutPrefix(part, Literal); is {
			text += more
			continue
		}
		parts, text = append(parts, celtext.String(text), part), ""
	}
	if text != "" || len(parts) == 0 {
		parts = append(parts, celtext.String(text))
	}
	return strings.Join(parts, " + ")
}

// At is a member.
func (p Place) At(key string) Place {
	next := p
	next.Nil = false
	next.Object, next.Path, next.Pointer = p.Object+"."+key, append(slices.Clone(p.Path), key), p.Pointer.Add(key)
	base, quoted := p.Direct, celtext.String(key)
	if p.Optional != "" {
		base = p.Optional
	}
	if p.Nil {
		base = "optional.ofNonZeroValue(" + p.Or("null") + ")"
	}
	next.Direct, next.Optional = p.Direct+"["+quoted+"]", base+"[?"+quoted+"]"
	if celtext.IsField(key) {
		next.Direct, next.Optional = p.Direct+"."+key, base+".?"+key
	}
	if p.Optional == "" && p.requires(key) {
		next.Optional = ""
	}
	return next
}

// requires reports whether every object has a member.
func (p Place) requires(key string) bool {
	switch key {
	case "metadata":
		return len(p.Path) == 0 && !p.InElement
	case "spec", "template", "jobTemplate":
		return p.Known && !p.InElement && (len(p.Path) == 0 || slices.Contains([]string{"spec", "template", "jobTemplate"}, p.Path[len(p.Path)-1]))
	case "containers":
		return p.Known && len(p.Path) > 0 && p.Path[len(p.Path)-1] == "spec"
	}
	return false
}

// Present holds if the value is there.
func (p Place) Present() string {
	switch {
	case p.Optional == "":
		return "true"
	case p.Nil:
		return p.Or("null") + " != null"
	case strings.Contains(p.Optional, ".last()"):
		return p.Optional + ".hasValue()"
	case strings.Count(p.Optional, "?") == 1 && (strings.HasSuffix(p.Optional, "']") || strings.HasSuffix(p.Optional, "\"]")):
		open := strings.LastIndex(p.Optional, "[?")
		return p.Optional[open+2:len(p.Optional)-1] + " in " + p.Optional[:open]
	case strings.Count(p.Optional, "?") == 1 && !strings.HasSuffix(p.Optional, "]"):
		return "has(" + p.Direct + ")"
	}
	return p.Optional + ".hasValue()"
}

// Or reads the value, or another one where there is none.
func (p Place) Or(otherwise string) string {
	if p.Optional == "" {
		return p.Direct
	}
	if p.Nil && otherwise != "null" {
		return "(" + p.Present() + " ? " + p.Direct + " : " + otherwise + ")"
	}
	return p.Optional + ".orValue(" + otherwise + ")"
}

// Last is the name of the last member.
func (p Place) Last() string { return p.Path[len(p.Path)-1] }

// Singular names an element of a list after it: container of containers.
func Singular(list string) string {
	name, plural := strings.CutSuffix(list, "s")
	if !plural || !celtext.IsField(name) {
		return "item"
	}
	return name
}
