package facts

import "slices"

// Shape is the sort of the values at a path, by its use in the policies: custom kinds have schemas with one
// type at each path.
type Shape int

const (
	unknown Shape = iota
	object        // a policy reads its members
	list          // a policy reads its elements or its length
	texts         // a list of plain values
	plain         // it is compared with texts, numbers and booleans alone
	element       // a plain value in a list
)

// ShapeOf returns the shape of the values at a path.
func (f *Facts) ShapeOf(p Path) Shape {
	hasMembers, hasElements := false, false
	for _, other := range f.Paths {
		if len(other) > len(p) && slices.Equal(other[:len(p)], p) {
			hasElements = hasElements || other[len(p)] == Each
			hasMembers = hasMembers || other[len(p)] != Each
		}
	}
	switch {
	case hasMembers && hasElements:
		return unknown
	case hasMembers:
		return object
	case hasElements && f.ShapeOf(p.With(Each)) == element:
		return texts
	case hasElements:
		return list
	}
	values := f.Exact[p.Key()]
	lists := 0
	for _, value := range values {
		switch value.(type) {
		case []any:
			lists++
		case string, float64, bool, int64, nil:
		default:
			return unknown
		}
	}
	switch {
	case len(values) > 0 && lists == len(values):
		return list // of a default, such as none
	case len(values) == 0 || lists > 0:
		return unknown
	case p[len(p)-1] == Each:
		return element
	}
	return plain
}

// Takes reports whether a value has the shape. No value is taken everywhere, null in place of a plain value alone: schemas refuse it
// unless they are nullable.
func (s Shape) Takes(value any) bool {
	elements, isList := value.([]any)
	_, isObject := value.(map[string]any)
	switch value.(type) {
	case Absent:
		return true
	case nil:
		return s == plain
	}
	switch s {
	case object:
		return isObject
	case list:
		return isList
	case texts:
		return isList && !slices.ContainsFunc(elements, func(v any) bool { return !element.Takes(v) })
	case plain, element:
		return !isList && !isObject
	}
	return true
}
