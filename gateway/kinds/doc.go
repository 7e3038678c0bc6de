// Package kinds lists the custom resources that the gateway reads: policies of Kyverno
// (kyverno.io and policies.kyverno.io) and of policy-controller (policy.sigstore.dev), mirrors, and
// global context entries; with their versions, and the form of their status.
package kinds
