// Package validate answers: is an object as a rule of Kyverno's with `validate` wants
// it?
//
// It compiles such rules (kyverno.io/v1, Kyverno 1.19, "Validate Rules") into package
// policy's Validation: pattern, anyPattern, deny, foreach, podSecurity and cel, with
// messages, actions and what was so before. Manifests and assert are refused with
// their path.
//
// Kyverno is followed with these exceptions, all of which are stricter: an error about
// one element of a foreach is not passed over because others follow; a list that cannot
// be evaluated for another reason than that it is not there is an error and not an
// empty list; an existing violation excuses a new one only if the rule can be asked
// about the object as it was; a deny condition that holds in one reading and not in
// another denies.
package validate
