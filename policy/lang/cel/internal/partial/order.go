package partial

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Greatest returns the greatest element of a list. Two elements without an order, as 80 and "80",
// are an error: Kubernetes' max keeps the first of them.
func Greatest(list ref.Val) ref.Val { return extreme(list, types.IntNegOne, "max") }

// Least is Greatest for the least element.
func Least(list ref.Val) ref.Val { return extreme(list, types.IntOne, "min") }

func extreme(list, replaces ref.Val, name string) ref.Val {
	elements, ok := list.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(list)
	}
	var best ref.Val
	for it := elements.Iterator(); it.HasNext() == types.True; {
		next := it.Next()
		if best == nil {
			best = next
		}
		order := compare(best, next)
		if types.IsUnknownOrError(order) {
			return order
		}
		if order == replaces {
			best = next
		}
	}
	if best == nil {
		return types.NewErr("%s called on empty list", name)
	}
	return best
}

// IsSorted reports whether no element of a list is greater than the next one. Neighbours without
// an order are an error, unless others are out of order.
func IsSorted(list ref.Val) ref.Val {
	elements, ok := list.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(list)
	}
	var previous ref.Val
	var sorted ref.Val = types.True
	for it := elements.Iterator(); it.HasNext() == types.True; {
		next := it.Next()
		if previous == nil {
			previous = next
		}
		order := compare(previous, next)
		switch {
		case order == types.IntOne:
			return types.False
		case types.IsUnknownOrError(order):
			sorted = order
		}
		previous = next
	}
	return sorted
}

// Sortable returns an error for a list with an element that has no order, as NaN, which the
// library's sort puts anywhere; nil for others. The library requires elements of one type.
func Sortable(keys ref.Val) ref.Val {
	elements, ok := keys.(traits.Lister)
	if !ok {
		return nil
	}
	for it := elements.Iterator(); it.HasNext() == types.True; {
		next := it.Next()
		if order := compare(next, next); types.IsUnknownOrError(order) {
			return order
		}
	}
	return nil
}

// compare returns the order of two elements. An element is compared with itself, too, since NaN has
// no order.
func compare(a, b ref.Val) ref.Val {
	comparer, ok := a.(traits.Comparer)
	if !ok {
		return types.MaybeNoSuchOverloadErr(a)
	}
	return comparer.Compare(b)
}
