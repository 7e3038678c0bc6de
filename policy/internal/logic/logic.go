// Package logic evaluates selectors and conditions in three-valued logic: strong Kleene
// logic (K3), as Kubernetes uses it for match conditions. A value is true, false or
// indeterminate, and an indeterminate value carries the cause.
//
// Indeterminate is a result, not a decision: a selector that a rule needs (match) makes
// the rule indeterminate, and one that takes the rule away (exclude, an exception) does
// not take it away.
package logic

import "errors"

// Value is one of true, false and indeterminate; the zero Value is false. It is
// immutable.
type Value struct {
	cause error // not nil: indeterminate
	holds bool
}

// Is returns true or false.
func Is(holds bool) Value { return Value{holds: holds} }

// Indeterminate returns the value of a failed evaluation. The cause names the missing data; it
// must not be nil.
func Indeterminate(cause error) Value {
	if cause == nil {
		cause = errors.New("no cause given")
	}
	return Value{cause: cause}
}

// True reports whether the value is true, not indeterminate.
func (v Value) True() bool { return v.cause == nil && v.holds }

// False reports whether the value is false, not indeterminate.
func (v Value) False() bool { return v.cause == nil && !v.holds }

// Cause returns why the value is indeterminate, else nil.
func (v Value) Cause() error { return v.cause }

// Result returns the value in the form of Go functions that can fail: an error means
// indeterminate.
func (v Value) Result() (bool, error) { return v.True(), v.cause }

// Not inverts true and false.
func (v Value) Not() Value {
	if v.cause != nil {
		return v
	}
	return Is(!v.holds)
}

// All is false if one part is false, else indeterminate with the first cause if one part
// is indeterminate, else true. Parts are evaluated in order until one is false, so that
// costly parts come last. No part at all is true.
func All(parts ...func() Value) Value {
	result := Is(true)
	for _, part := range parts {
		v := part()
		if v.False() {
			return v
		}
		result = Prefer(result, v)
	}
	return result
}

// Any is true if the condition is true of one item, else indeterminate with the first
// cause if it is indeterminate of one, else false. No item at all is false.
func Any[T any](items []T, condition func(T) Value) Value {
	result := Is(false)
	for _, item := range items {
		v := condition(item)
		if v.True() {
			return v
		}
		result = Prefer(result, v)
	}
	return result
}

// Prefer returns the second of two values, unless the first is indeterminate: then it returns the
// first, or the one with the prevailing cause. Such a cause means that the subject of the
// decision cannot be evaluated either.
func Prefer(first, second Value) Value {
	if first.cause == nil || second.cause != nil && prevails(second.cause) && !prevails(first.cause) {
		return second
	}
	return first
}

func prevails(cause error) bool {
	one, is := errors.AsType[interface {
		error
		Prevails() bool
	}](cause)
	return is && one.Prevails()
}

// Every is All over items.
func Every[T any](items []T, condition func(T) Value) Value {
	return Any(items, func(item T) Value { return condition(item).Not() }).Not()
}
