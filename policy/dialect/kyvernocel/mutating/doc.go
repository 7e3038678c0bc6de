// Package mutating compiles MutatingPolicies.
//
// It compiles MutatingPolicy and NamespacedMutatingPolicy of Kyverno's policies.kyverno.io (v1,
// v1beta1 and v1alpha1, Kyverno 1.19) into a policy.Mutation for the objects that the policy
// matches, and one for each kind of pod controllers in its generated rules. Expressions are CEL,
// by package policy/lang/cel, compiled once, with the results of Kubernetes 1.37's
// MutatingAdmissionPolicy (KEP 3962):
//
//   - Object{...}, a configuration that is merged as server-side apply merges, by the
//     types of Kubernetes 1.37. For a kind that is not Kubernetes' own, the keys of lists
//     are unknown: its maps are merged, and a list in the configuration is refused.
//   - JSONPatch{...}, operations of RFC 6902. If an operation test fails, the patch
//     leaves the object unchanged.
//
// Each mutation, its variables included, reads the object as the previous ones left it. A
// generated rule for pod controllers applies to the pod template the changes that the original
// applies to a pod. This includes the pointers of a JSONPatch, which Kyverno does not rewrite.
// Objects are never modified: changed parts are copied, the rest is shared.
//
// With evaluation.mutateExisting a policy is a policy.Alteration too: it changes the objects that
// targetMatchConstraints name, by kinds, names, labels and namespaces or by an expression, whenever the
// policy matches a new trigger. Without
// targetMatchConstraints it changes the objects that it matches itself, and also when the policy
// is added. Expressions then read the changed object and the trigger's request.
package mutating
