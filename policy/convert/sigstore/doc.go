// Package sigstore reads ClusterImagePolicies of policy-controller.
//
// It follows policy.sigstore.dev/v1beta1 and v1alpha1. CUE, Rego and TrustRoots are
// refused: the gateway also accepts these policies unconverted (package policy/dialect/sigstore).
package sigstore
