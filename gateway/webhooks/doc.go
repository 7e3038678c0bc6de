// Package webhooks is the component that keeps the webhook configurations of the API server
// (admissionregistration.k8s.io/v1) as the active policies, mirrors and settings require: it writes
// them on the leader, repairs them after changes by other clients, and observes from when on the
// API server uses them.
package webhooks
