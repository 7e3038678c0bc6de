// Package native compiles the API server's own admission policies.
//
// It compiles ValidatingAdmissionPolicy and MutatingAdmissionPolicy of admissionregistration.k8s.io
// (v1, v1beta1 and v1alpha1, Kubernetes 1.37; KEP 3488 and 3962) with their bindings and parameters:
// Join puts the bindings into the documents of their policies, and each of them is one
// policy.Validation or policy.Mutation with the name of the binding. A policy without a binding has no
// rules. The API server evaluates these kinds at admission, so no endpoint of the gateway reads them:
// the rules are for the evaluation of files and for scans.
//
// The results are the API server's, with one more: what the expressions read and the caller does not
// know is indeterminate. An expression that fails is an error of the policy, which its failurePolicy
// admits or not, as in the API server.
package native
