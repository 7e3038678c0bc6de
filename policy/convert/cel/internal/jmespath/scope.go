package jmespath

import (
	"maps"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
)

// Scope gives the names in an expression their meaning. The zero value knows the request alone, with an object
// of any kind.
type Scope struct {
	// Object is the shape of the object; the zero value is that of an object of any kind.
	Object shape.Shape
	// ObjectName is what request.object is in CEL; empty means object.
	ObjectName string
	// Operations are those of the requests; empty means any.
	Operations []string
	// Untyped: data has no type that is known, as an attestation. It is used as what the expression needs, with a guard
	// where another type would have another result: conditions write guards.
	Untyped bool
	// names are those besides request.
	names map[string]Binding
}

// Binding is the meaning of a name.
type Binding struct {
	// Text is an expression of CEL that can be followed by a dot.
	Text string
	// Shape describes its value.
	Shape shape.Shape
	// Missing, Null, Fails and Guards are as in term.Term.
	Missing, Null, Fails bool
	Guards               []string
	// Member: the value is the member of this name of Text, an object.
	Member bool
}

// With returns a scope in which one more name has a meaning.
func (s Scope) With(name string, is Binding) Scope {
	names := maps.Clone(s.names)
	if names == nil {
		names = map[string]Binding{}
	}
	names[name] = is
	s.names = names
	return s
}

// Has reports whether a name has a meaning.
func (s Scope) Has(name string) bool {
	_, ok := s.names[name]
	return ok
}

// WithElement returns the scope within a foreach: name is that of the element in CEL, and depth how many
// foreach are around it.
func (s Scope) WithElement(name string, of shape.Shape, depth int) Scope {
	is := Binding{Text: name, Shape: of}
	return s.With("element", is).With("element"+strconv.Itoa(depth), is)
}

// Element returns what element means; ok is false outside of a foreach.
func (s Scope) Element() (is Binding, ok bool) {
	is, ok = s.names["element"]
	return is, ok
}

// has reports whether requests may be of an operation.
func (s Scope) has(operation string) bool {
	return len(s.Operations) == 0 || slices.Contains(s.Operations, operation)
}

// object is request.object. At a deletion it is the deleted object, under the name that the caller gives.
func (s Scope) object() term.Term {
	name, of := s.ObjectName, s.Object
	if name == "" {
		name = "object"
	}
	if of.Kinds == 0 {
		of = shape.Of(nil)
	}
	return term.At(name, of)
}

// old is request.oldObject, which is null at a creation.
func (s Scope) old() term.Term {
	of := s.Object
	if of.Kinds == 0 {
		of = shape.Of(nil)
	}
	v := term.At("oldObject", of)
	v.Null = s.has("CREATE") || s.has("CONNECT")
	return v
}

// request is the member of the request that is known to have one value in both languages.
func (s Scope) request(member string) (term.Term, bool) {
	name, full := shape.OfName(false), shape.OfName(true)
	switch member {
	case "object":
		return s.object(), true
	case "oldObject":
		return s.old(), true
	case "operation":
		return term.At("request.operation", full), true
	case "namespace", "name", "subResource":
		return term.At("request."+member, name), true
	case "kind":
		return term.At("request.kind", shape.OfFields(map[string]shape.Shape{"group": name, "version": full, "kind": full})), true
	case "resource":
		return term.At("request.resource", shape.OfFields(map[string]shape.Shape{"group": name, "version": full, "resource": full})), true
	case "userInfo":
		return term.At("request.userInfo", shape.OfFields(map[string]shape.Shape{
			"username": shape.OfText(), "groups": shape.OfList(shape.OfText()),
		})), true
	}
	return term.Term{}, false
}
