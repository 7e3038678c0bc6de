// Package sigstore answers: what does policy-controller's ClusterImagePolicy ask of
// images?
//
// It follows policy.sigstore.dev/v1beta1 and v1alpha1. What is said in CUE or Rego, or
// in a TrustRoot, is refused: the gateway takes these policies as they are, too
// (package policy/sigstore).
package sigstore
