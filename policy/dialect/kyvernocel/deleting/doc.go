// Package deleting compiles DeletingPolicies.
//
// It compiles DeletingPolicy and NamespacedDeletingPolicy of Kyverno's policies.kyverno.io (v1,
// v1beta1 and v1alpha1, Kyverno 1.19) into a policy.Deletion. Expressions are CEL, by package
// policy/lang/cel, compiled once. They read object, the stored object, and namespaceObject; there is
// no request, because a schedule and no user deletes the object. Whatever cannot be evaluated keeps
// the object: a match, a condition or a variable with an error never deletes.
//
// A policy without matchConstraints selects no object of a cluster. It can be evaluated for
// documents that are no Kubernetes objects, as in Kyverno's suites.
package deleting
