package jmespath

import (
	"fmt"
	"maps"

	jp "github.com/kyverno/go-jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/internal/function"
	"k8s.io/apimachinery/pkg/api/resource"
)

// entry makes the library's form of a function. The checks are ours, for the
// library's messages print Go types, and values however large.
func entry(f function.Function, name string, m *meter) jp.FunctionEntry {
	return jp.FunctionEntry{Name: name, Handler: func(given []any) (any, error) {
		for i := range given { // checkCall has counted them
			if err := check(f, i, given[i], m); err != nil {
				return nil, fmt.Errorf("%s: argument %d: %w", name, i+1, err)
			}
		}
		if f.Cost != nil {
			cost, err := f.Cost(given)
			if err == nil {
				err = m.take(cost)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		result, err := f.Call(given)
		if err == nil {
			err = m.take(resultCost(result))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, brief(err))
		}
		if !function.IsJSON(result) { // an average of none, or too large a number
			return nil, m.indeterminate(fmt.Errorf("%s: the result %v is out of range: it and other values %w", name, result, ErrNoOrder))
		}
		return result, nil
	}}
}

// check refuses an argument of the wrong kind or size, and charges for its traversal.
func check(f function.Function, i int, given any, m *meter) error {
	want := f.Arguments[min(i, len(f.Arguments)-1)]
	if got := function.KindOf(given); got&want == 0 {
		if got == function.Null {
			return fmt.Errorf("want %s, got %w", want, ErrNull)
		}
		return fmt.Errorf("want %s, got %s", want, got)
	}
	text, ok := given.(string)
	switch {
	case len(text) > function.MaxText:
		return function.TooLarge("a string", len(text), function.MaxText)
	case ok:
		return m.take(valueCost + len(text))
	case f.Shallow:
		return m.take(valueCost)
	}
	return m.walk(given)
}

// table lists every function: those of Kyverno 1.19, and the library's own, some of
// them replaced.
func (e *Engine) table() map[string]function.Function {
	table := map[string]function.Function{}
	for _, functions := range []map[string]function.Function{e.natives(), e.options.library().Table()} {
		maps.Copy(table, functions)
	}
	for name, cost := range costs() {
		f := table[name]
		f.Cost = cost
		table[name] = f
	}
	return table
}

func (o Options) library() function.Library {
	return function.Library{Now: o.Now, Random: o.Random, Hosts: o.Hosts, DefaultRegistry: o.DefaultRegistry}
}

// ParseQuantity is resource.ParseQuantity with a bound on length and exponent. It refuses a number
// without a digit.
func ParseQuantity(text string) (resource.Quantity, error) { return function.ParseQuantity(text) }
