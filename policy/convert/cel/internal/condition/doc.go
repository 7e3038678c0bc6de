// Package condition writes the conditions of Kyverno's policies ("Preconditions" and deny conditions, 1.19) as
// conditions in CEL.
//
// A condition is written if it has the same result for every object of the kinds that its rule matches. Where it
// is indeterminate in the source, because a value from the object would decide as a wildcard or has no order, the
// result has the value that leads to a denial.
package condition
