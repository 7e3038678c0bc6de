// Package fitness decides whether a policy can be left to an API server: whether that admits nothing that the
// gateway's webhook denies, denies nothing that it admits, and keeps its limits.
//
// The semantics of an API server are those of admissionregistration.k8s.io/v1 (Kubernetes 1.37).
package fitness
