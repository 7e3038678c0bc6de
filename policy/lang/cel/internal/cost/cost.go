package cost

import (
	"errors"
	"regexp/syntax"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	regular "github.com/quaymaster/quaymaster/internal/expression"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// cost returns the cost of a call, or refuses a call with a result that would be too large.
type cost func(arguments []ref.Val) (uint64, error)

// priceOf returns the price of a call, or nil if the call has only the base cost of its node in
// the expression.
func priceOf(call interpreter.InterpretableCall) cost {
	if overloads.IsTypeConversionFunction(call.Function()) && isConstant(call.Args()[0]) {
		return nil // done when the program is made
	}
	switch function := call.Function(); function {
	case operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate, operators.LogicalNot,
		operators.Index, operators.OptIndex, operators.OptSelect, operators.NotStrictlyFalse,
		operators.LogicalAnd, operators.LogicalOr, operators.Conditional,
		overloads.Size, overloads.TypeConvertInt, overloads.TypeConvertUint, overloads.TypeConvertDouble, overloads.TypeConvertBool,
		overloads.TypeConvertDyn, overloads.TypeConvertType:
		return nil
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		if id := call.OverloadID(); id != "" && !strings.HasSuffix(id, "_string") && !strings.HasSuffix(id, "_bytes") {
			return nil
		}
		return linear
	case operators.Add:
		switch call.OverloadID() {
		case overloads.AddString, overloads.AddBytes, overloads.AddList, "":
			return addition
		}
		return nil
	case operators.In:
		if isSet(call.Args()[1]) {
			return nil
		}
		return linear
	case overloads.Matches, findName, findAllName, extractName, extractAllName:
		return patternOf(call)
	case replaceName:
		return patternReplacement(patternOf(call))
	case "replace":
		return replacement
	case "join":
		return joining
	case "lists.range":
		return counting
	case "x509.decode":
		return decoding
	case "quantity", "isQuantity":
		return measuring
	case "distinct", "sets.contains", "sets.equivalent", "sets.intersects":
		return quadratic
	}
	return linear
}

// isSet reports whether a container is a constant list of scalars, which the library looks
// into by a hash.
func isSet(i interpreter.InterpretableV2) bool {
	constant, ok := i.(interpreter.InterpretableConst)
	if !ok {
		return false
	}
	list, ok := constant.Value().(traits.Lister)
	if !ok {
		return false
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		switch it.Next().(type) {
		case traits.Lister, traits.Mapper, *types.Optional:
			return false
		}
	}
	return true
}

func isConstant(i interpreter.InterpretableV2) bool {
	_, ok := i.(interpreter.InterpretableConst)
	return ok
}

func linear(arguments []ref.Val) (cost uint64, err error) {
	for _, argument := range arguments {
		cost += weight(argument)
	}
	return cost, nil
}

// measuring is the price of parsing a quantity.
func measuring(arguments []ref.Val) (uint64, error) {
	text, _ := arguments[0].(types.String)
	if exceeded, is := errors.AsType[*limit.ExceededError](limit.Quantity(string(text))); is {
		return 0, &ExceededError{What: exceeded.What, Most: uint64(exceeded.Most)} //nolint:gosec // it is a constant
	}
	return linear(arguments)
}

// decoding is the price of parsing a certificate, which becomes many values: four units a byte.
func decoding(arguments []ref.Val) (uint64, error) { return 4 * textUnit * weight(arguments[0]), nil }

func addition(arguments []ref.Val) (uint64, error) {
	left, right := arguments[0], arguments[1]
	switch l := left.(type) {
	case types.String:
		r, _ := right.(types.String)
		return textCost(len(l), len(r))
	case types.Bytes:
		r, _ := right.(types.Bytes)
		return textCost(len(l), len(r))
	case traits.Lister:
		r, ok := right.(traits.Lister)
		if !ok {
			return 0, nil
		}
		return 0, checkItems(size(l) + size(r))
	}
	return 0, nil
}

func textCost(parts ...int) (uint64, error) {
	total := 0
	for _, part := range parts {
		total += part
	}
	if total > maxText {
		return 0, &ExceededError{What: "the bytes of a text", Most: maxText}
	}
	return uint64(total) / textUnit, nil
}

func checkItems(count uint64) error {
	if count > maxItems {
		return &ExceededError{What: "the items of a list", Most: maxItems}
	}
	return nil
}

// patternOf is the price of a regular expression, which is computed once for a constant.
func patternOf(call interpreter.InterpretableCall) cost {
	if len(call.Args()) > 1 {
		if known, ok := call.Args()[1].(interpreter.InterpretableConst); ok {
			if text, ok := known.Value().(types.String); ok {
				return constant(string(text))
			}
		}
	}
	return pattern
}

// pattern is the price of a regular expression that is compiled and run.
func pattern(arguments []ref.Val) (uint64, error) {
	cost, _ := linear(arguments)
	text, _ := arguments[0].(types.String)
	expression, _ := arguments[1].(types.String)
	if err := checkPattern(string(expression)); err != nil {
		return 0, err
	}
	return cost + uint64(1+len(text)/textUnit)*uint64(1+steps(string(expression))/4), nil
}

// constant is the price of a regular expression that is known beforehand.
func constant(expression string) cost {
	if err := checkPattern(expression); err != nil {
		return func([]ref.Val) (uint64, error) { return 0, err }
	}
	each := uint64(1 + steps(expression)/4)
	return func(arguments []ref.Val) (uint64, error) {
		cost, _ := linear(arguments)
		text, _ := arguments[0].(types.String)
		return cost + uint64(1+len(text)/textUnit)*each, nil
	}
}

// checkPattern bounds a regular expression before it is compiled: a{1000} is longer than it looks, and so is
// \pL.
func checkPattern(expression string) error {
	if len(expression) > maxPattern {
		return &ExceededError{What: "the bytes of a regular expression", Most: maxPattern}
	}
	if !isLarge(expression) {
		return nil
	}
	if size, err := regular.Size(expression); err == nil && size > maxProgram {
		return &ExceededError{What: "the instructions of a regular expression", Most: maxProgram}
	}
	return nil
}

// isLarge reports whether a regular expression may compile to more than its length suggests.
func isLarge(expression string) bool {
	return strings.Contains(expression, "{") || strings.Contains(strings.ToLower(expression), `\p`)
}

// steps bounds the steps of a regular expression for each letter: its length, or more if it
// repeats parts of itself, as in (a?){1000}.
func steps(expression string) int {
	if !strings.Contains(expression, "{") {
		return len(expression)
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return len(expression) // refused when it is called
	}
	compiled, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return len(expression)
	}
	return max(len(expression), len(compiled.Inst))
}

// replacement may make a text of the product of two lengths.
func replacement(arguments []ref.Val) (uint64, error) {
	text, _ := arguments[0].(types.String)
	if len(arguments) < 3 {
		return linear(arguments)
	}
	old, _ := arguments[1].(types.String)
	with, _ := arguments[2].(types.String)
	found := len(text) + 1
	if old != "" {
		found = strings.Count(string(text), string(old))
	}
	return textCost(len(text), found*len(with))
}

// patternReplacement is the price of replacing the matches of a regular expression. A reference
// to a group, two bytes, may expand to the whole text.
func patternReplacement(matching cost) cost {
	return func(arguments []ref.Val) (uint64, error) {
		cost, err := matching(arguments)
		if err != nil {
			return 0, err
		}
		text, _ := arguments[0].(types.String)
		with, _ := arguments[2].(types.String)
		made, err := textCost(len(text), 2*(len(text)+1)*len(with))
		return cost + made, err
	}
}

func joining(arguments []ref.Val) (uint64, error) {
	list, ok := arguments[0].(traits.Lister)
	if !ok {
		return 0, nil
	}
	between := 0
	if len(arguments) > 1 {
		text, _ := arguments[1].(types.String)
		between = len(text)
	}
	total := 0
	for it := list.Iterator(); it.HasNext() == types.True && total <= maxText; {
		text, _ := it.Next().(types.String)
		total += len(text) + between
	}
	cost, err := textCost(total)
	return cost + size(list), err
}

func counting(arguments []ref.Val) (uint64, error) {
	n, _ := arguments[0].(types.Int)
	if n < 0 {
		return 0, nil
	}
	return uint64(n), checkItems(uint64(n))
}

func quadratic(arguments []ref.Val) (uint64, error) {
	first := weight(arguments[0])
	last := weight(arguments[len(arguments)-1])
	if first > MaxCost || last > MaxCost {
		return MaxCost + 1, nil
	}
	return first * last, nil
}
