package workload

import (
	"iter"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is one value of an object, read in place, without decoding the rest. The zero Value is
// empty, and so is every value that is read from it.
type Value struct {
	in *document
	at uint32
}

// Root returns the object itself as a value.
func (o Object) Root() Value { return Value{in: o.document} }

func (v Value) node() *node { return &v.in.nodes[v.at] }

// Kind returns the kind of the value; zero for the zero Value.
func (v Value) Kind() jsontext.Kind {
	if v.in == nil {
		return jsontext.KindInvalid
	}
	return v.node().kind
}

// IsNull reports whether the value is absent or null, which Kubernetes treats alike.
func (v Value) IsNull() bool { return v.in == nil || v.Kind() == jsontext.KindNull }

// IsObject reports whether the value is an object.
func (v Value) IsObject() bool { return v.Kind() == jsontext.KindBeginObject }

// IsList reports whether the value is a list.
func (v Value) IsList() bool { return v.Kind() == jsontext.KindBeginArray }

// IsText reports whether the value is a text.
func (v Value) IsText() bool { return v.Kind() == jsontext.KindString }

// IsTrue reports whether the value is true.
func (v Value) IsTrue() bool { return v.Kind() == jsontext.KindTrue }

// Text returns the value as text; empty if it is not text.
func (v Value) Text() string {
	if !v.IsText() {
		return ""
	}
	return v.node().textIn(v.in.text)
}

// Member returns an object's member of a name.
func (v Value) Member(name string) Value {
	if !v.IsObject() {
		return Value{}
	}
	nodes, end := v.in.nodes, v.node().next
	for at := v.at + 1; at < end; at = nodes[at].next {
		if n := &nodes[at]; n.nameIn(v.in.text) == name {
			return Value{v.in, at}
		}
	}
	return Value{}
}

// Members returns an object's members with their names, in their order.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for _, member := range v.held(jsontext.KindBeginObject) {
			if !yield(member.node().nameIn(v.in.text), member) {
				return
			}
		}
	}
}

// Elements returns a list's elements, numbered from 0 on.
func (v Value) Elements() iter.Seq2[int, Value] { return v.held(jsontext.KindBeginArray) }

// held returns the content of an object or list; empty for a value of another kind.
func (v Value) held(by jsontext.Kind) iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.Kind() != by {
			return
		}
		nodes, end := v.in.nodes, v.node().next
		i := 0
		for at := v.at + 1; at < end; at = nodes[at].next {
			if !yield(i, Value{v.in, at}) {
				return
			}
			i++
		}
	}
}

// Texts returns an object's members that are texts, as labels are; never nil.
func (v Value) Texts() map[string]string {
	texts := map[string]string{}
	for name, member := range v.Members() {
		if member.IsText() {
			texts[name] = member.Text()
		}
	}
	return texts
}

// count returns how many values an object or list holds.
func (v Value) count() int {
	count := 0
	for at, end := v.at+1, v.node().next; at < end; at = v.in.nodes[at].next {
		count++
	}
	return count
}

// Decoded returns the value as decoded by encoding/json: maps, lists, texts, float64; nil for the
// zero Value. The caller owns the result.
func (v Value) Decoded() any {
	switch v.Kind() {
	case jsontext.KindBeginObject:
		return v.decodedObject()
	case jsontext.KindBeginArray:
		list := make([]any, 0, v.count())
		for _, element := range v.Elements() {
			list = append(list, element.Decoded())
		}
		return list
	case jsontext.KindString:
		return v.Text()
	case jsontext.KindNumber:
		number, _ := strconv.ParseFloat(v.node().value.of(v.in.text), 64) // in range, since it was indexed
		return number
	case jsontext.KindTrue, jsontext.KindFalse:
		return v.IsTrue()
	}
	return nil
}

func (v Value) decodedObject() map[string]any {
	object := make(map[string]any, v.count())
	for name, member := range v.Members() {
		object[name] = member.Decoded()
	}
	return object
}
