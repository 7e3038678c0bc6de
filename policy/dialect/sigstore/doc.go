// Package sigstore compiles ClusterImagePolicies of Sigstore's policy-controller.
//
// It compiles documents of policy.sigstore.dev/v1beta1 and v1alpha1 into package policy's
// form: one authority of a policy suffices, and all policies that match an image must
// hold. A check expresses the authorities where it can. Where authorities differ in their
// requirements, or spec.policy evaluates their verified claims, a policy.Judge evaluates
// each by a check of its own, and then that policy. Every field is honoured, refused with
// its path, or on the list of Ignored. Package trustroot compiles TrustRoot documents
// (v1alpha1). A policy reads its Roots by name for each request, so that a changed root
// takes effect with the next one.
//
// Where policy-controller has known weaknesses, this package is stricter: identities match
// as a whole and are never half open, keyless signatures always require a trusted time,
// and no spelling of an image's name escapes a glob. The package opens no connection.
package sigstore
