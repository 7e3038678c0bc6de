package function

import "strings"

// Kind is a set of types that an argument may have.
type Kind byte

// The kinds of JSON values, and an expression such as &name.
const (
	String Kind = 1 << iota
	Number
	Array
	Object
	Boolean
	Null
	Expression

	Anything = String | Number | Array | Object | Boolean | Null
)

// KindOf returns the kind of a value.
func KindOf(value any) Kind {
	switch value.(type) {
	case nil:
		return Null
	case string:
		return String
	case float64:
		return Number
	case bool:
		return Boolean
	case []any:
		return Array
	case map[string]any:
		return Object
	default:
		return Expression
	}
}

func (k Kind) String() string {
	if k == Anything {
		return "any value"
	}
	var names []string
	for i, name := range []string{"a string", "a number", "an array", "an object", "a boolean", "null", "an expression"} {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}
