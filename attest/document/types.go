package document

import (
	"fmt"
	"maps"
	"slices"
)

// Type is the type of a member of a document, as it is called in messages.
type Type string

// The types.
const (
	Text   Type = "a text"
	Object Type = "an object"
	List   Type = "a list"
	Texts  Type = "a list of texts"
)

// Types are those of the members that decisions depend on.
type Types map[string]Type

// Check requires an object with members of these types, or nothing. A member may be absent or null; one of another type
// would read as absent, and hide findings, fixes, products, packages or licences.
func (t Types) Check(n Node) error {
	if n.Has() && n.Members() == nil {
		return fmt.Errorf("it is not %s", Object)
	}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if member := n.Get(name); member.Has() && !t[name].of(member) {
			return fmt.Errorf("%s is not %s", name, t[name])
		}
	}
	return nil
}

// of reports whether a value has the type.
func (t Type) of(n Node) bool {
	switch t {
	case Text:
		_, ok := n.value.(string)
		return ok
	case Object:
		return n.Members() != nil
	}
	if !n.IsList() || t == List {
		return n.IsList()
	}
	return !slices.ContainsFunc(n.List(), func(element Node) bool { return !Text.of(element) })
}
