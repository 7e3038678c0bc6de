package rulecontext

import (
	"fmt"
	"strconv"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// maxElements bounds the elements of one foreach; the largest object that Kubernetes accepts has
// some ten thousand elements.
const maxElements = 20_000

// List evaluates the list of a foreach: a value other than a list becomes a list of one item. A
// missing list is a *jmespath.UndefinedError.
func List(list *variable.Expression, data variable.Context) ([]any, error) {
	value, err := list.Evaluate(data)
	if err != nil {
		return nil, err
	}
	elements, ok := value.([]any)
	if !ok {
		elements = []any{value}
	}
	if len(elements) > maxElements {
		return nil, fmt.Errorf("the number of elements %w of %d", jmespath.ErrTooLarge, maxElements)
	}
	return elements, nil
}

// Element fills inner with the members of outer and those of the element at a position
// of a foreach: element and elementIndex, and the same with the nesting behind it, of
// which the outermost foreach has 0.
func Element(inner, outer variable.Context, element any, position, nesting int) {
	for name, value := range outer {
		inner[name] = value
	}
	number := strconv.Itoa(nesting)
	index := float64(position)
	inner["element"], inner["elementIndex"] = element, index
	inner["element"+number], inner["elementIndex"+number] = element, index
}
