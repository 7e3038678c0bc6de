// Package generating compiles GeneratingPolicies.
//
// It compiles GeneratingPolicy and NamespacedGeneratingPolicy of Kyverno's policies.kyverno.io (v1, v1beta1 and
// v1alpha1, Kyverno 1.19) into a policy.Generation. Each entry of generate is an expression in CEL (cel-spec
// 0.25) that calls generator.Apply, or a template in YAML 1.2 with expressions in (( and )).
//
// It only computes the objects: package background writes them, and the API server authorizes the writes. The
// objects that expressions read by resource.Get and resource.List are sources (package policy/source): a
// result is computed anew when one of them changes.
package generating
