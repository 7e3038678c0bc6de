package celtext

import (
	"strconv"
	"strings"
)

// Path is the location of a value, as an expression reads it.
type Path struct {
	// Nil: the value may be there as null, as the rules of a ClusterRole that has none.
	Nil bool
	// Direct reads the value where it is sure to be there, and Optional where it may not be: an
	// optional value of CEL. Optional is empty for a value that is there.
	Direct, Optional string
	// Present holds where the value is there.
	Present string
}

// At returns the location of a member of an object.
func (p Path) At(key string) Path {
	base, quoted := p.Direct, String(key)
	if p.Optional != "" {
		base = p.Optional
	}
	member := Path{Direct: p.Direct + "[" + quoted + "]", Optional: base + "[?" + quoted + "]"}
	if IsField(key) {
		member = Path{Direct: p.Direct + "." + key, Optional: base + ".?" + key}
	}
	switch {
	case p.Optional != "":
		member.Present = member.Optional + ".hasValue()"
	case IsField(key):
		member.Present = "has(" + member.Direct + ")"
	default:
		member.Present = quoted + " in " + p.Direct
	}
	return member
}

// Index returns the location of a member whose name an expression has: a text, which binds more than a relation.
func (p Path) Index(name string) Path {
	base := p.Direct
	if p.Optional != "" {
		base = p.Optional
	}
	member := Path{Direct: p.Direct + "[" + name + "]", Optional: base + "[?" + name + "]", Present: name + " in " + p.Direct}
	if p.Optional != "" {
		member.Present = member.Optional + ".hasValue()"
	}
	return member
}

// Sure is the location once the value is known to be there.
func (p Path) Sure() Path { return Path{Direct: p.Direct} }

// Or reads the value, or another one where it is not there or null.
func (p Path) Or(otherwise string) string {
	switch {
	case p.Optional == "":
		return p.Direct
	case p.Nil && otherwise != "null":
		return "(" + p.Or("null") + " != null ? " + p.Direct + " : " + otherwise + ")"
	}
	return p.Optional + ".orValue(" + otherwise + ")"
}

// ElementName names an element of a list after it, as container of containers; it is none of those that are
// taken.
func ElementName(list string, taken func(name string) bool) string {
	name := list[strings.LastIndexAny(list, ".?]'")+1:]
	singular, plural := strings.CutSuffix(name, "s")
	if y, is := strings.CutSuffix(name, "ies"); is {
		singular = y + "y"
	}
	if !plural || !IsField(singular) || singular == "" {
		singular = "item"
	}
	name = singular
	for n := 2; taken(name); n++ {
		name = singular + strconv.Itoa(n)
	}
	return name
}
