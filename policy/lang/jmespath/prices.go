package jmespath

import (
	"fmt"
	"math/bits"
	"regexp/syntax"
	"strings"

	jp "github.com/kyverno/go-jmespath"
)

// prices are the costs of functions beyond the traversal of the arguments and the result.
func prices() map[string]func(a arguments) (int, error) {
	long := func(times int) func(arguments) (int, error) {
		return func(a arguments) (int, error) { return times * len(a.text(0)), nil }
	}
	matched := func(a arguments) (int, error) {
		size, err := programSize(a.text(0))
		return size * (mapCost + len(a.textOf(1))), err
	}
	return map[string]func(a arguments) (int, error){
		"trim":              func(a arguments) (int, error) { return len(a.text(0)) * len(a.text(1)) / trimSpeed, nil },
		"split":             splitPrice,
		"items":             itemsPrice,
		"parse_json":        long(parsedCost),
		"parse_yaml":        long(parsedCost),
		"x509_decode":       long(parsedCost),
		"regex_match":       matched,
		"regex_replace_all": matched, "regex_replace_all_literal": matched,
		"pattern_match": func(a arguments) (int, error) {
			if !strings.Contains(a.text(0), "?") {
				return 0, nil
			}
			return len(a.text(0)) * len(a.textOf(1)), nil
		},
		"object_from_lists": func(a arguments) (int, error) { return len(a.list(0)) * memberCost, nil },
		"contains":          containsPrice,
		"merge":             mergePrice,
		"sort":              scalarsPrice, "max": scalarsPrice, "min": scalarsPrice, "avg": numbersPrice,
		"reverse": func(a arguments) (int, error) {
			if list, ok := a[0].([]any); ok {
				return len(list) * valueCost, nil
			}
			return 4 * len(a.text(0)), nil
		},
	}
}

func splitPrice(a arguments) (int, error) {
	parts := strings.Count(a.text(0), a.text(1)) + 1
	if parts > maxItems {
		return 0, tooLarge("a list", parts, maxItems)
	}
	return parts * memberCost, nil
}

func itemsPrice(a arguments) (int, error) {
	if list, ok := a[0].([]any); ok {
		return len(list) * mapCost, nil
	}
	return len(a.object(0)) * mapCost, nil
}

// containsPrice is that of comparing a string with each item.
func containsPrice(a arguments) (int, error) {
	each := valueCost
	if text, ok := a[1].(string); ok {
		each += len(text)
	}
	if list, ok := a[0].([]any); ok {
		return len(list) * each, nil
	}
	return 0, nil
}

func mergePrice(a arguments) (int, error) {
	members := 0
	for i := range a {
		members += len(a.object(i))
	}
	return mapCost + members*memberCost, nil
}

// scalarsPrice is that of comparing all items with one another, as sorting does.
// The library's own message would print a list of anything else.
func scalarsPrice(a arguments) (int, error) {
	cost := 0
	for i, item := range a.list(0) {
		got := kindOf(item)
		if first := kindOf(a.list(0)[0]); got != first || got&textOrNumber == 0 {
			return 0, fmt.Errorf("item %d: want all numbers or all strings, got %s", i, got)
		}
		if text, ok := item.(string); ok {
			cost += len(text)
		}
		cost += valueCost
	}
	return cost * bits.Len(uint(len(a.list(0)))), nil
}

func numbersPrice(a arguments) (int, error) {
	for i, item := range a.list(0) {
		if kindOf(item) != aNumber {
			return 0, fmt.Errorf("item %d: want a number, got %s", i, kindOf(item))
		}
	}
	return len(a.list(0)) * valueCost, nil
}

// resultCost is the cost of a function's result, without the parts that it shares with its
// arguments.
func resultCost(value any) int {
	switch v := value.(type) {
	case string:
		return len(v)
	case []any:
		return len(v) * valueCost
	}
	return valueCost
}

// natives are the library's functions that remain in use, with their arguments. The library
// implements them; their cost is charged here.
func (e *Engine) natives() map[string]function {
	number, texts, list := []kind{aNumber}, words(2), []kind{anArray}
	table := map[string]function{
		"abs": {arguments: number}, "ceil": {arguments: number}, "floor": {arguments: number},
		"starts_with": {arguments: texts}, "ends_with": {arguments: texts},
		"avg": {arguments: list}, "max": {arguments: list}, "min": {arguments: list}, "sort": {arguments: list},
		"contains": {arguments: []kind{anArray | aString, anything}}, "length": {arguments: []kind{aString | anArray | anObject}},
		"reverse": {arguments: []kind{anArray | aString}}, "to_array": {arguments: []kind{anything}},
		"to_number": {arguments: []kind{anything}}, "type": {arguments: []kind{anything}},
		"merge": {arguments: []kind{anObject}, variadic: true}, "not_null": {arguments: []kind{anything}, variadic: true},
	}
	for name, f := range table {
		f.shallow = true
		f.call = func(a arguments) (any, error) { return e.library.CallFunction(name, a, jp.NewInterpreter()) }
		table[name] = f
	}
	for name := range expressionAt() {
		table[name] = function{arguments: []kind{anything, anything}, native: true}
	}
	return table
}

// expressionAt lists the functions that take an expression, and as which argument.
func expressionAt() map[string]int {
	return map[string]int{"map": 0, "sort_by": 1, "max_by": 1, "min_by": 1}
}

// programSize returns the maximum number of instructions that a regular expression compiles to.
// Each of them may read each character of a text.
func programSize(pattern string) (int, error) {
	if len(pattern) > maxPattern {
		return 0, tooLarge("a regular expression", len(pattern), maxPattern)
	}
	size := 2*len(pattern) + 2
	if strings.Contains(pattern, "{") { // x{1000} is longer than it looks
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			return 0, fmt.Errorf("regular expression %q: %w", shorten(pattern), err)
		}
		size += repeated(parsed)
	}
	if size > maxProgram {
		return 0, tooLarge("the size of a regular expression", size, maxProgram)
	}
	return size, nil
}

func repeated(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		size += repeated(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1) + 1
	}
	return min(size, maxProgram+1)
}
