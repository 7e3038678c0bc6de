package jmespath

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	jp "github.com/kyverno/go-jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/internal/function"
)

// The library evaluates without counting. So Compile inserts our own calls where the cost can
// grow with data (projections, [], comparisons of two values, functions that take an expression),
// and every function charges its cost before it runs. Between two of these, each node of the tree
// is evaluated at most once for each charged item.

// meter counts the cost of one evaluation, in the units of maxWork.
type meter struct {
	left int
	// over stays set, because the library treats some errors as null.
	over error
	// unknown stays set, too: a comparison that decides was indeterminate.
	unknown error
}

// take charges for work before it is done.
func (m *meter) take(cost int) error {
	if m.over == nil && (cost < 0 || cost > m.left) {
		m.over = fmt.Errorf("the work for this expression %w of %d", ErrTooLarge, maxWork)
	}
	m.left -= cost
	return m.over
}

// walk charges for the traversal of a value, which must not be larger than a result.
func (m *meter) walk(value any) error {
	budget := maxResult
	function.Spend(value, &budget)
	if budget < 0 {
		return fmt.Errorf("the result %w of %d bytes", ErrTooLarge, maxResult)
	}
	return m.take(maxResult - budget)
}

// run is the state of one evaluation; an Engine caches some.
type run struct {
	meter           meter
	caller, library *jp.FunctionCaller
	// foreign: the data comes from a statement or an image.
	foreign bool
}

func (e *Engine) newRun() any {
	r := &run{caller: jp.NewFunctionCaller(), library: e.library}
	for name, f := range e.functions {
		if !f.Native {
			if sorts(name) {
				f.Call = r.sorting(f.Call)
			}
			r.caller.Register(entry(f, name, &r.meter))
		}
	}
	for name, f := range inserted() {
		r.caller.Register(jp.FunctionEntry{Name: name, Handler: func(given []any) (any, error) { return f(r, given) }})
	}
	r.registerOrder()
	for name, f := range tolls() {
		for size := range maxToll + 1 {
			r.caller.Register(jp.FunctionEntry{Name: tollName(name, 1<<size), Handler: func(given []any) (any, error) {
				return f(&r.meter, given[0], 1<<size)
			}})
		}
	}
	return r
}

// tollName has the weight in it, as a power of two not below it: an argument of
// its own would make a small projection slower by a tenth.
func tollName(name string, weight int) string {
	return name + strconv.Itoa(min(bits.Len(uint(weight-1)), maxToll))
}

// Functions that Compile puts into an expression; their names are none that an
// expression can call.
const (
	payList      = "(list)"
	payItems     = "(items)"
	payFlat      = "(flat)"
	payCompared  = "(compared)"
	memberValues = "(values)"
	sortKeys     = "(sort_by)"
	maxKeys      = "(max_by)"
	minKeys      = "(min_by)"
)

// tolls accept a list, and charge a weight for each item of it: the number of values that are
// created or read.
func tolls() map[string]func(m *meter, list any, weight int) (any, error) {
	return map[string]func(*meter, any, int) (any, error){payItems: itemsPaid, payFlat: flatPaid, memberValues: valuesPaid}
}

func inserted() map[string]func(r *run, given []any) (any, error) {
	return map[string]func(*run, []any) (any, error){
		payList:      func(r *run, given []any) (any, error) { return listPaid(&r.meter, given) },
		optionalCall: (*run).callOptional,
		payCompared:  func(r *run, given []any) (any, error) { return comparedPaid(&r.meter, given) },
		sortKeys:     sortedByKeys,
		maxKeys:      func(r *run, given []any) (any, error) { return bestByKeys(r, "max_by", given, 1) },
		minKeys:      func(r *run, given []any) (any, error) { return bestByKeys(r, "min_by", given, -1) },
	}
}

// itemsPaid returns the list after charging for the evaluation of its items.
func itemsPaid(m *meter, list any, weight int) (any, error) {
	items, _ := list.([]any)
	return list, m.take(len(items) * weight * valueCost)
}

// listPaid is itemsPaid for a function with only a list argument. The second argument names the
// function; the third is the weight.
func listPaid(m *meter, given []any) (any, error) {
	if given[0] == nil {
		return nil, fmt.Errorf("%s: want an array, got %w", given[1], ErrNull)
	}
	if function.KindOf(given[0]) != function.Array {
		return nil, fmt.Errorf("%s: want an array, got %s", given[1], function.KindOf(given[0]))
	}
	return itemsPaid(m, given[0], given[2].(int))
}

// flatPaid pays for the list that [] is about to make.
func flatPaid(m *meter, list any, weight int) (any, error) {
	items, _ := list.([]any)
	size := 0
	for _, item := range items {
		if inner, ok := item.([]any); ok {
			size += len(inner)
		} else {
			size++
		}
	}
	if size > maxItems {
		m.over = function.TooLarge("a list", size, maxItems)
		return nil, m.over
	}
	return list, m.take((len(items) + size*weight) * valueCost)
}

// comparedPaid charges for a comparison, which reads at most one of the two values, and allocates
// notes for lists and objects.
func comparedPaid(m *meter, given []any) (any, error) {
	before := m.left
	if err := m.walk(given[0]); err != nil {
		return nil, err
	}
	if function.KindOf(given[0])&(function.Array|function.Object) == 0 {
		return given[0], nil
	}
	return given[0], m.take((comparedCost - 1) * (before - m.left))
}

// valuesPaid returns the members of an object in the order of their keys, and null for anything
// else: the library returns them in a random order.
func valuesPaid(m *meter, value any, weight int) (any, error) {
	object, ok := value.(map[string]any)
	if !ok {
		return nil, nil
	}
	if err := m.take(len(object) * (2 + weight) * valueCost); err != nil {
		return nil, err
	}
	return function.Values(function.Arguments{object})
}

// keyed is an item with its sort key.
type keyed struct {
	item   any
	text   string
	number float64
}

func (k keyed) compare(other keyed) int {
	return cmp.Or(cmp.Compare(k.number, other.number), strings.Compare(k.text, other.text))
}

// keyedItems pairs items with their keys, which are all numbers or all strings.
// The cost is that of comparing each item times often.
func (r *run) keyedItems(name string, given []any, times int) ([]keyed, error) {
	items, keys := given[0].([]any), given[1].([]any)
	pairs := make([]keyed, len(items))
	cost := 0
	for i, key := range keys {
		pairs[i].item = items[i]
		switch k := key.(type) {
		case string:
			pairs[i].text = k
			cost += len(k)
		case float64:
			pairs[i].number = k
		default:
			return nil, fmt.Errorf("%s: the key of item %d: want a string or a number, got %s", name, i, function.KindOf(key))
		}
		if function.KindOf(key) != function.KindOf(keys[0]) {
			return nil, fmt.Errorf("%s: the key of item %d: want %s as the first has, got %s", name, i, function.KindOf(keys[0]), function.KindOf(key))
		}
		cost += valueCost
	}
	if err := r.meter.take(cost * times); err != nil {
		return nil, err
	}
	return pairs, r.sortable(keys)
}

// sortedByKeys does the work of sort_by. The library's would find each key again
// for each comparison, and sorts in place, where others look.
func sortedByKeys(r *run, given []any) (any, error) {
	items := given[0].([]any)
	if len(items) < 2 {
		return given[0], nil
	}
	pairs, err := r.keyedItems("sort_by", given, bits.Len(uint(len(items))))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(pairs, keyed.compare)
	sorted := make([]any, len(pairs))
	for i, pair := range pairs {
		sorted[i] = pair.item
	}
	return sorted, nil
}

// bestByKeys does the work of max_by (sign 1) and min_by (sign -1): the first of
// the best.
func bestByKeys(r *run, name string, given []any, sign int) (any, error) {
	items := given[0].([]any)
	switch len(items) {
	case 0:
		return nil, nil
	case 1:
		return items[0], nil
	}
	pairs, err := r.keyedItems(name, given, 1)
	if err != nil {
		return nil, err
	}
	best := pairs[0]
	for _, pair := range pairs[1:] {
		if sign*pair.compare(best) > 0 {
			best = pair
		}
	}
	return best.item, nil
}

// weigh counts the values that one evaluation of a tree creates or reads, without those that are
// charged elsewhere.
func weigh(node jp.ASTNode) int {
	weight := 1
	switch node.NodeType {
	case jp.ASTMultiSelectHash:
		weight += mapCost / valueCost
	case jp.ASTMultiSelectList, jp.ASTFunctionExpression:
		weight += 2 + len(node.Children)
	}
	if operands, ok := node.Value.(*either); ok {
		weight += weigh(operands.first) + weigh(operands.second)
	}
	if text, ok := node.Value.(string); ok {
		weight += len(text) / valueCost
		if strings.ContainsRune(text, markOpen) {
			weight += maxPath / valueCost // it may become a path
		}
	}
	for _, child := range node.Children {
		weight += weigh(child)
	}
	return weight
}
