// Package imagevalidating compiles ImageValidatingPolicies for objects and their images.
//
// It compiles ImageValidatingPolicy, NamespacedImageValidatingPolicy and PolicyException of
// Kyverno's policies.kyverno.io (v1, v1beta1 and v1alpha1, Kyverno 1.19) into the form of package
// policy. Expressions are CEL, by package policy/lang/cel. They are compiled once, and their
// verification calls are found before the evaluation. The gate verifies these claims, for all
// policies together. A judge then evaluates the expressions on the verified claims. The package
// contacts no registry.
package imagevalidating
