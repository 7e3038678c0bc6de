// Package mutating answers: what does a MutatingPolicy make of an object?
//
// It compiles MutatingPolicy and NamespacedMutatingPolicy of Kyverno's
// policies.kyverno.io (v1, v1beta1 and v1alpha1, Kyverno 1.19) into a policy.Mutation
// for what the policy matches, and one for each kind of pod controllers that follows from
// pods. Expressions are CEL, by package policy/cel, compiled once, and make what
// MutatingAdmissionPolicy of Kubernetes 1.36 (KEP 3962) has them make:
//
//   - Object{...}, a configuration that is merged as server-side apply merges, by the
//     types of Kubernetes 1.36. Of a kind that is not Kubernetes' own nobody knows which
//     lists have keys: its maps are merged, and a list in the configuration is refused.
//   - JSONPatch{...}, operations of RFC 6902. Where an operation test fails, the patch
//     leaves the object as it is.
//
// Each mutation, its variables included, sees what the ones before made of the object.
// What a rule for pod controllers makes of a pod, it makes of the pod template; a
// JSONPatch too, whose pointers Kyverno leaves as they are. Objects are never modified:
// what changes is copied, the rest is shared.
//
// With evaluation.mutateExisting a policy is a policy.Alteration too: it changes the
// objects that targetMatchConstraints name whenever something comes that the policy
// matches; without them, those that it matches itself, and also when the policy comes.
// Expressions then see the object that is changed and the request of what came.
package mutating
