// Package cleanup compiles Kyverno's cleanup policies.
//
// It compiles CleanupPolicy and ClusterCleanupPolicy of kyverno.io (v2 and v2beta1, Kyverno 1.19)
// into a policy.Deletion. Conditions and context entries read the stored object as target, its
// images, and request.namespace, as in Kyverno; there is no other part of a request, because a
// schedule and no user deletes the object. Whatever cannot be evaluated keeps the object.
//
// A match selects less than one of another rule, and an exclusion more: a selector of namespaces
// selects no object that is in none, and excludes those. A kind without a group is that of
// Kubernetes, if Kubernetes has one.
package cleanup
