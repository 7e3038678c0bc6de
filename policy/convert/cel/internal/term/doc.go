// Package term builds expressions of CEL (cel-spec 0.25) out of parts, with the types of their values and the
// cases in which a value is missing.
package term
