package jmespath

import (
	"fmt"
	"math/bits"
	"strings"

	jp "github.com/kyverno/go-jmespath"

	"github.com/quaymaster/quaymaster/internal/expression"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/internal/function"
)

// costs are the costs of functions beyond the traversal of the arguments and the result.
func costs() map[string]func(a function.Arguments) (int, error) {
	long := func(times int) func(function.Arguments) (int, error) {
		return func(a function.Arguments) (int, error) { return times * len(a.Text(0)), nil }
	}
	matched := func(a function.Arguments) (int, error) {
		size, err := programSize(a.Text(0))
		return size * (mapCost + len(a.TextOf(1))), err
	}
	return map[string]func(a function.Arguments) (int, error){
		"trim":              func(a function.Arguments) (int, error) { return len(a.Text(0)) * len(a.Text(1)) / trimSpeed, nil },
		"split":             splitCost,
		"items":             itemsCost,
		"parse_json":        long(parsedCost),
		"parse_yaml":        long(parsedCost),
		"x509_decode":       long(parsedCost),
		"regex_match":       matched,
		"regex_replace_all": matched, "regex_replace_all_literal": matched,
		"pattern_match": func(a function.Arguments) (int, error) {
			if !strings.Contains(a.Text(0), "?") {
				return 0, nil
			}
			return len(a.Text(0)) * len(a.TextOf(1)), nil
		},
		"object_from_lists": func(a function.Arguments) (int, error) { return len(a.List(0)) * memberCost, nil },
		"contains":          containsCost,
		"merge":             mergeCost,
		"sort":              scalarsCost, "max": scalarsCost, "min": scalarsCost, "avg": numbersCost,
		"reverse": func(a function.Arguments) (int, error) {
			if list, ok := a[0].([]any); ok {
				return len(list) * valueCost, nil
			}
			return 4 * len(a.Text(0)), nil
		},
	}
}

func splitCost(a function.Arguments) (int, error) {
	parts := strings.Count(a.Text(0), a.Text(1)) + 1
	if parts > maxItems {
		return 0, function.TooLarge("a list", parts, maxItems)
	}
	return parts * memberCost, nil
}

func itemsCost(a function.Arguments) (int, error) {
	if list, ok := a[0].([]any); ok {
		return len(list) * mapCost, nil
	}
	return len(a.Object(0)) * mapCost, nil
}

// containsCost is that of comparing a string with each item.
func containsCost(a function.Arguments) (int, error) {
	each := valueCost
	if text, ok := a[1].(string); ok {
		each += len(text)
	}
	if list, ok := a[0].([]any); ok {
		return len(list) * each, nil
	}
	return 0, nil
}

func mergeCost(a function.Arguments) (int, error) {
	members := 0
	for i := range a {
		members += len(a.Object(i))
	}
	return mapCost + members*memberCost, nil
}

// scalarsCost is that of comparing all items with one another, as sorting does.
// The library's own message would print a list of anything else.
func scalarsCost(a function.Arguments) (int, error) {
	cost := 0
	for i, item := range a.List(0) {
		got := function.KindOf(item)
		if first := function.KindOf(a.List(0)[0]); got != first || got&function.TextOrNumber == 0 {
			return 0, fmt.Errorf("item %d: want all numbers or all strings, got %s", i, got)
		}
		if text, ok := item.(string); ok {
			cost += len(text)
		}
		cost += valueCost
	}
	return cost * bits.Len(uint(len(a.List(0)))), nil
}

func numbersCost(a function.Arguments) (int, error) {
	for i, item := range a.List(0) {
		if function.KindOf(item) != function.Number {
			return 0, fmt.Errorf("item %d: want a number, got %s", i, function.KindOf(item))
		}
	}
	return len(a.List(0)) * valueCost, nil
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
func (e *Engine) natives() map[string]function.Function {
	table := function.Natives()
	for name, f := range table {
		if f.Native {
			continue
		}
		f.Call = func(a function.Arguments) (any, error) { return e.library.CallFunction(name, a, jp.NewInterpreter()) }
		table[name] = f
	}
	return table
}

// programSize returns the maximum number of instructions that a regular expression compiles to.
// Each of them may read each character of a text.
func programSize(pattern string) (int, error) {
	if len(pattern) > function.MaxPattern {
		return 0, function.TooLarge("a regular expression", len(pattern), function.MaxPattern)
	}
	size := 2*len(pattern) + 2
	if strings.Contains(pattern, "{") || strings.Contains(strings.ToLower(pattern), `\p`) { // x{1000} is longer than it looks
		more, err := expression.Size(pattern)
		if err != nil {
			return 0, fmt.Errorf("regular expression %q: %w", function.Shorten(pattern), err)
		}
		size += more
	}
	if size > maxProgram {
		return 0, function.TooLarge("the size of a regular expression", size, maxProgram)
	}
	return size, nil
}
