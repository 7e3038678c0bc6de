// Package convert converts policies of other systems to ImageValidatingPolicies.
//
// It reads Connaisseur 3's application values, the Notary Project's trust policy 1.0,
// containers-policy.json(5), OpenShift's ImagePolicy and ClusterImagePolicy
// (config.openshift.io/v1), Ratify 1's Verifier (config.ratify.deislabs.io/v1beta1) and
// Ratify 2's Executor (config.ratify.sh/v2alpha1), Kyverno's ClusterPolicy and Policy with
// verifyImages (kyverno.io/v1), and policy-controller's ClusterImagePolicy
// (policy.sigstore.dev); it writes ImageValidatingPolicies of policies.kyverno.io/v1.
//
// Each field is converted completely or refused with its path: no field is dropped, and no
// policy becomes weaker. Where one rule of the source takes precedence over another, the
// policies exclude the images of a more specific one, since all policies that match an
// image must agree. The package opens no connection; files that a policy names are read
// from the folder that the caller passes.
package convert
