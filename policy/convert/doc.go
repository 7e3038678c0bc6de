// Package convert answers: what would an ImageValidatingPolicy say that says the
// same as this policy of another system?
//
// It reads Connaisseur 3's application values, the Notary Project's trust policy
// 1.0, containers-policy.json(5), OpenShift's ImagePolicy and ClusterImagePolicy
// (config.openshift.io/v1), Ratify 1's Verifier (config.ratify.deislabs.io/v1beta1)
// and Ratify 2's Executor (config.ratify.sh/v2alpha1), Kyverno's ClusterPolicy and
// Policy with verifyImages (kyverno.io/v1), and policy-controller's
// ClusterImagePolicy (policy.sigstore.dev); it writes ImageValidatingPolicies of
// policies.kyverno.io/v1.
//
// What was said is carried whole or refused with its path: no field is dropped,
// and no policy comes out weaker. Where one rule of the source takes an image from
// another, the policies exclude what a more specific one takes, since all policies
// that match an image must agree. Nothing here opens a connection; files that a
// policy names are read from the folder that the caller hands in.
package convert
