// Package native is the component that lets the API server evaluate policies itself (role native): it writes
// ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings (admissionregistration.k8s.io v1 and
// v1beta1, Kubernetes 1.30 to 1.37) from the active policies that package policy/convert/native can convert whole.
//
// A policy always has one side that enforces it. Its objects are written, their type check is awaited, and every API
// server is probed; only then the record says that the webhook is not needed. Objects are removed once the webhooks are
// known to enforce the version of the policy that is active. In between both sides enforce: validations twice are the
// same, and only mutations that may be repeated are written.
package native
