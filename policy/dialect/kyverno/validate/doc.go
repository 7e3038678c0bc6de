// Package validate evaluates Kyverno rules with `validate` for an object.
//
// It compiles such rules (kyverno.io/v1, Kyverno 1.19, "Validate Rules") into package policy's
// Validation: pattern, anyPattern, deny, foreach, podSecurity, cel and manifests, with messages,
// actions and existing violations. Assert is refused with its path.
//
// The package follows Kyverno with these exceptions, all of which are stricter. An error for one
// element of a foreach is not ignored because others follow. A list that cannot be evaluated is
// an error and not an empty list, unless it is absent. An existing violation excuses a new one
// only if the rule can be evaluated on the old object. A deny condition that holds in one reading
// and not in another denies.
package validate
