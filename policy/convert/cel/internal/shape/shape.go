package shape

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Kinds is a set of types of JSON.
type Kinds byte

// The types of JSON.
const (
	Text Kinds = 1 << iota
	Number
	Bool
	List
	Object
	Null

	Any = Text | Number | Bool | List | Object | Null
)

// Shape describes a value as far as its type determines it.
type Shape struct {
	// Kinds are the types that it may have where it is there.
	Kinds Kinds
	// Full: it is never empty, false or zero where it is there, since such a value is left out.
	Full bool
	// Plain: a text without wildcards, as names, labels and operations are.
	Plain bool
	// Quantity: a text that is a quantity of Kubernetes.
	Quantity bool
	// Whole: a number without fraction.
	Whole bool

	of      []reflect.Type // of an object or a list; all of them are possible
	fields  map[string]Shape
	element *Shape
	names   bool // the values of the map are names
	root    bool // an object of the API itself
	only    []string
}

// Unknown may be anything.
func Unknown() Shape { return Shape{Kinds: Any} }

// OfText is a text.
func OfText() Shape { return Shape{Kinds: Text} }

// OfName is a text as of a name; one that is full is not empty.
func OfName(full bool) Shape { return Shape{Kinds: Text, Plain: true, Full: full} }

// OfNumber is a whole number.
func OfNumber() Shape { return Shape{Kinds: Number, Whole: true} }

// OfBool is true or false.
func OfBool() Shape { return Shape{Kinds: Bool} }

// OfList is a list with elements of a shape.
func OfList(element Shape) Shape { return Shape{Kinds: List, element: &element} }

// OfFields is an object with members of known shapes, which are always there.
func OfFields(fields map[string]Shape) Shape { return Shape{Kinds: Object, Full: true, fields: fields} }

// Of is an object of one of some types; without any, one of which only the metadata is known.
func Of(types []reflect.Type) Shape {
	if len(types) == 0 {
		return Shape{Kinds: Object, Full: true, root: true}
	}
	return Shape{Kinds: Object, Full: true, of: types, root: true}
}

// Only is the shape of an object of which no other members are read.
func (s Shape) Only(members ...string) Shape {
	s.only = members
	return s
}

// Is reports whether the value is of one of some types where it is there.
func (s Shape) Is(kinds Kinds) bool { return s.Kinds&^kinds == 0 }

// May reports whether the value may be of one of some types.
func (s Shape) May(kinds Kinds) bool { return s.Kinds&kinds != 0 }

// Closed reports whether the names of the members are those of a type, and no data.
func (s Shape) Closed() bool {
	for _, t := range s.of {
		if t.Kind() != reflect.Struct {
			return false
		}
	}
	return len(s.of) > 0 && s.Is(Object)
}

// Element is the shape of the elements of a list, or of the values of a map.
func (s Shape) Element() Shape {
	if s.element != nil {
		return *s.element
	}
	var all []Shape
	for _, t := range s.of {
		switch t.Kind() {
		case reflect.Slice, reflect.Map:
			one := ofType(t.Elem())
			one.Full = false // an element is written, whatever it is
			one.Plain = one.Plain || s.names
			all = append(all, one)
		default:
			return Unknown()
		}
	}
	return union(all)
}

// Field is the shape of a member, and whether the member is sure to be there; found is false if no
// object has it.
func (s Shape) Field(name string) (member Shape, sure, found bool) {
	if s.fields != nil {
		member, found = s.fields[name]
		return member, found, found
	}
	if len(s.only) > 0 && !slices.Contains(s.only, name) {
		return Shape{}, false, false
	}
	if s.root {
		switch name {
		case "apiVersion", "kind":
			return OfName(true), true, true
		case "metadata":
			return metadata(), true, true
		}
	}
	if len(s.of) == 0 {
		return Unknown(), false, true
	}
	var all []Shape
	everywhere := true
	for _, t := range s.of {
		one, is := fieldOf(t, name)
		if is {
			all = append(all, one)
		}
		everywhere = everywhere && is
	}
	if len(all) == 0 {
		return Shape{}, false, false
	}
	member = union(all)
	if s.names {
		member.Plain, member.names = true, true
	}
	sure = everywhere && (s.root && name == "spec" || s.required(name))
	member.Full = member.Full || sure && !s.root
	return member, sure, true
}

// required reports whether an API server refuses an object without a member, or with an empty one: the containers
// of a pod, and their names and images.
func (s Shape) required(name string) bool {
	for _, t := range s.of {
		switch t {
		case reflect.TypeFor[core.PodSpec]():
			if name != "containers" {
				return false
			}
		case reflect.TypeFor[core.Container](), reflect.TypeFor[core.EphemeralContainer](), reflect.TypeFor[core.EphemeralContainerCommon]():
			if name != "name" && name != "image" {
				return false
			}
		default:
			return false
		}
	}
	return len(s.of) > 0
}

// MayBeNil reports whether an API server writes null for a member that is empty.
func (s Shape) MayBeNil(name string) bool {
	for _, t := range s.of {
		if t.Kind() != reflect.Struct {
			continue
		}
		for i := range t.NumField() {
			f := t.Field(i)
			written, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			isEmpty := f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map || f.Type.Kind() == reflect.Pointer
			if written == name && isEmpty && !strings.Contains(options, "omit") {
				return true
			}
		}
	}
	return false
}

// metadata are those of every object.
func metadata() Shape {
	return Shape{Kinds: Object, Full: true, of: []reflect.Type{reflect.TypeFor[meta.ObjectMeta]()}}
}

// fieldOf returns the shape of the member of a type.
func fieldOf(t reflect.Type, name string) (Shape, bool) {
	switch t.Kind() {
	case reflect.Map:
		one := ofType(t.Elem())
		one.Full = false
		return one, true
	case reflect.Struct:
	default:
		return Shape{}, false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		written, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if written == name {
			one := ofType(f.Type)
			one.Full = strings.Contains(options, "omitempty") && f.Type.Kind() != reflect.Pointer && !one.Is(Object)
			one.Plain = one.Plain || isName(t, name)
			one.names = isMeta(t) && name == "labels"
			return one, true
		}
		if f.Anonymous && written == "" || strings.Contains(options, "inline") {
			if found, ok := fieldOf(element(f.Type), name); ok {
				return found, true
			}
		}
	}
	return Shape{}, false
}

func isMeta(t reflect.Type) bool { return t == reflect.TypeFor[meta.ObjectMeta]() }

// isName reports whether an API server refuses a member with other signs than those of names.
func isName(t reflect.Type, name string) bool {
	switch t {
	case reflect.TypeFor[core.Container](), reflect.TypeFor[core.EphemeralContainerCommon](), reflect.TypeFor[core.Volume]():
		return name == "name"
	}
	return isMeta(t) && (name == "name" || name == "namespace" || name == "uid")
}

func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// ofType returns the shape of the values of a type.
func ofType(t reflect.Type) Shape {
	t = element(t)
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return Shape{Kinds: Text, Quantity: true}
	case reflect.TypeFor[meta.Time](), reflect.TypeFor[meta.MicroTime]():
		return Shape{Kinds: Text | Null}
	case reflect.TypeFor[intstr.IntOrString]():
		return Shape{Kinds: Text | Number, Whole: true}
	}
	opaque := reflect.TypeFor[json.Unmarshaler]()
	if t.Kind() == reflect.Interface || t.Implements(opaque) || reflect.PointerTo(t).Implements(opaque) {
		return Unknown()
	}
	switch t.Kind() {
	case reflect.String:
		return Shape{Kinds: Text}
	case reflect.Bool:
		return Shape{Kinds: Bool}
	case reflect.Struct, reflect.Map:
		return Shape{Kinds: Object, of: []reflect.Type{t}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return Shape{Kinds: Text} // in base64
		}
		return Shape{Kinds: List, of: []reflect.Type{t}}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return Shape{Kinds: Number, Whole: true}
	case reflect.Float64:
		return Shape{Kinds: Number}
	}
	return Unknown()
}

// Union is the shape of a value that has one of two shapes.
func Union(a, b Shape) Shape { return union([]Shape{a, b}) }

// union is the shape of what has one of several.
func union(all []Shape) Shape {
	if len(all) == 0 {
		return Unknown()
	}
	out := all[0]
	for _, s := range all[1:] {
		if out.May(List) && s.May(List) {
			both := union([]Shape{out.Element(), s.Element()})
			out.element = &both
		}
		out.Kinds |= s.Kinds
		out.fields = nil
		out.Full, out.Plain, out.Quantity, out.Whole = out.Full && s.Full, out.Plain && s.Plain, out.Quantity && s.Quantity, out.Whole && s.Whole
		if len(out.of) == 0 || len(s.of) == 0 {
			out.of = nil
		} else {
			out.of = append(out.of[:len(out.of):len(out.of)], s.of...)
		}
	}
	return out
}
