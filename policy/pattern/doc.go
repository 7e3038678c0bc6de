// Package pattern answers: does an object look as a pattern of a policy wants it?
//
// Patterns are Kyverno's overlay patterns (1.19, "Validate Rules", validate.pattern
// and anyPattern). A pattern is an object like the one it judges. Every key of it
// must be there with a matching value, and what it does not mention is not
// looked at. Every element of a list must match the pattern's list. A value may
// have the operators `!`, `>`, `<`, `>=`, `<=`, the ranges `a-b` and `a!-b`, `*`
// and `?`, and `|` and `&` between them; both sides are compared as durations if
// they can be, else as quantities, else as text. Anchors around a key:
//
//	(x)   the rest of the object counts only if x is there and matches
//	<(x)  the rule counts only if x matches or is not there
//	=(x)  if x is there, it must match
//	^(x)  the list x has an element like each one of the pattern
//	X(x)  there must be no x
//
// `$(./../x)` stands for what the pattern itself has at that path.
//
// # Missing, null, empty
//
// A field that is not there is null. Null is held by the pattern null; by a
// comparison with a duration or a quantity it counts as zero, so that `<5` and
// `!5` hold and `>5` does not; no text matches it. The pattern null is also held
// by "", 0 and false. The value `*` of a plain key wants anything but null, also
// an object, a list or ""; `?*` wants at least one character. A single value,
// `*` and null included, is held by an empty list, for every element matches.
//
// # Skipping
//
// A condition that does not hold leaves out its object, and with it what is
// around, up to the nearest list or =(): there, it leaves out that element or
// that field. If all elements are left out, so is the list, yet what stands
// beside it must match even so. Whoever owns one list can thus not take the rule
// back for another. The rule is skipped if nothing fails and a list, or all that
// has an anchor, is left out. A global anchor leaves out an element in a list,
// too; outside of one, or for all elements, it skips the rule at once.
//
// # Variables
//
// All `{{ }}` are evaluated before anything is matched, each once, and one that is
// undefined is an error even in a part that would not be reached. What a variable brings
// is plain text: operators, ranges and wildcards count where the policy spells them out,
// as in "{{ team }}-*", and in no ConfigMap, label or annotation. Its lists and objects
// have the shape of a pattern, without anchors, references and further variables. Where
// the other reading, Kyverno's, decides otherwise, the comparison is indeterminate.
//
// # Three values
//
// A comparison is indeterminate if it depends on the reading of what a variable brings, or
// orders what has no order. As a value of a key it does not hold: the object fails in one
// reading. In a condition it is an error: the rest must not be left out in doubt.
//
// # Where it differs from Kyverno
//
//   - Kyverno judges with the first item of a list of objects or values and ignores
//     the others; here every element must match every item.
//   - Of several labels or annotations that a key with a wildcard stands for,
//     Kyverno picks one at random; here all must match, and for a condition one.
//   - ^() fails where the list is missing, as it does where it is empty.
//   - A condition that does not hold within a list or =() keeps what stands beside
//     it judged, in any order; in Kyverno that depends on the names of the keys.
//   - Where a key with an anchor is nowhere in the object, Kyverno makes a failure an
//     error without a path; here it is a failure with one.
//   - A variable brings keys as names and texts as texts. In Kyverno a key "(x)" of an
//     object's own data would be a condition, and "!x" a negation.
//   - A text without an order does not leave out a rule by its condition, nor does the
//     text "true" where the pattern has the boolean.
//   - An order over text that is written out is refused when the policy is read.
//   - Numbers are compared with text in decimal; Kyverno writes 1.5 as 1.5E+00, so
//     that `!1.5*` would hold for it.
//   - Text is compared as text: what reads like an error message of Kyverno's is
//     no reason to skip a rule.
//   - +(), an empty name, ^() of anything but objects and a reference to nothing
//     are refused when the policy is read.
package pattern
