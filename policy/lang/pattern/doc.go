// Package pattern matches objects against the patterns of policies.
//
// Patterns are Kyverno's overlay patterns (1.19, "Validate Rules", validate.pattern and
// anyPattern). A pattern is an object in the form of the objects that it matches. Each of its
// keys must exist with a matching value, and other keys are ignored. Every element of a list must
// match the pattern's list. A value may have the operators `!`, `>`, `<`, `>=`, `<=`, the ranges
// `a-b` and `a!-b`, `*` and `?`, and `|` and `&` between them; both sides are compared as
// durations if they can be, else as quantities, else as text. Anchors around a key:
//
//	(x)   the rest of the object counts only if x is there and matches
//	<(x)  the rule counts only if x matches or is not there
//	=(x)  if x is there, it must match
//	^(x)  for each element of the pattern, the list x, if it is there, has a match
//	X(x)  there must be no x
//
// `$(./../x)` is a reference to the pattern's own value at that path.
//
// # Missing, null, empty
//
// A missing field is null. Null matches the pattern null. In a comparison with a duration or a
// quantity it counts as zero, so that `<5` and `!5` hold and `>5` does not; it matches no text.
// The pattern null also matches "", 0 and false. The value `*` of a plain key requires any value
// but null, also an object, a list or ""; `?*` requires at least one character. An empty list
// matches a single value, `*` and null included, because every element matches.
//
// # Skipping
//
// A condition that does not hold skips its object and the enclosing ones, up to the nearest list
// or =(): there, it skips that element or that field. If all elements are skipped, so is the
// list, but its siblings must still match. The owner of one list can thus not disable the rule
// for another. The rule is skipped if nothing fails and a list, or all parts with an anchor, are
// skipped. A global anchor that does not hold skips one level more: within a list the element, or,
// if it skips all of them, what encloses the list; within =() what encloses that field. Each up
// to the next list or =(), and the rule at once if there is none.
//
// Where a part of an object is skipped and another part with an anchor holds, the object holds
// partly. So does a list of which an item skips all elements and another item none. A single
// pattern accepts that. For an existence anchor it is no match, one of several patterns counts as
// skipped, and a condition of a patch does not hold, as in Kyverno.
//
// # Variables
//
// All `{{ }}` are evaluated once, before matching. An undefined one is an error even in a part
// that would not be reached. The value of a variable is plain text: operators, ranges and
// wildcards count in the policy's own text, as in "{{ team }}-*", and in no ConfigMap, label or
// annotation. Lists and objects from a variable have the shape of a pattern, without anchors,
// references and further variables. If the other reading, Kyverno's, gives a different result,
// the comparison is indeterminate.
//
// # Three values
//
// A comparison is indeterminate if it depends on the reading of a variable's value, or orders
// values that have no order. As a value of a key it does not hold: the object fails in one
// reading. In a condition it is an error: an uncertain condition must not skip the rest.
//
// # Differences from Kyverno
//
// docs/kyverno-differences.md has them with the reasons.
//
//   - Kyverno judges with the first item of a list of objects or values and ignores
//     the others; here every element must match every item.
//   - Of several labels or annotations that match a key with a wildcard,
//     Kyverno picks one at random; here all must match, and for a condition one.
//   - A condition that does not hold within a list or =() does not skip its
//     siblings, in any order; in Kyverno that depends on the names of the keys.
//   - An object that holds partly passes a single pattern; in Kyverno it is skipped.
//   - If a key with an anchor is nowhere in the object, Kyverno makes a failure an
//     error without a path; here it is a failure with one.
//   - A variable adds keys as names and texts as texts. In Kyverno a key "(x)" of an
//     object's own data would be a condition, and "!x" a negation.
//   - A text without an order does not skip a rule by its condition, nor does the
//     text "true" if the pattern has the boolean.
//   - An order over literal text is refused when the policy is read.
//   - Numbers are compared with text in decimal; Kyverno writes 1.5 as 1.5E+00, so
//     that `!1.5*` would hold for it.
//   - Text is compared as text: one in the form of Kyverno's error messages does
//     not skip a rule.
//   - An anchor around a key with a wildcard is refused outside of labels and
//     annotations: Kyverno takes it for the name of a field.
//   - +(), an empty name, ^() of anything but objects and a reference to nothing
//     are refused when the policy is read.
package pattern
