// Package imagevalidating answers: what does an ImageValidatingPolicy ask of an object
// and its images?
//
// It compiles ImageValidatingPolicy, NamespacedImageValidatingPolicy and PolicyException
// of Kyverno's policies.kyverno.io (v1, v1beta1 and v1alpha1, Kyverno 1.19) into the form
// of package policy. Expressions are CEL, by package policy/cel. They are compiled once,
// and what they would have verified is found in them before they are evaluated: the gate
// proves it, for all policies together, and a judge evaluates the expressions on what was
// proved. Nothing here reaches a registry.
package imagevalidating
