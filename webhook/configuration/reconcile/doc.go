// Package reconcile keeps the webhook configurations of a cluster up to date.
//
// In each round a Reconciler builds the configurations from the current input (package
// configuration), reads the stored ones, and writes only differences. It corrects changes by other
// clients, and stops at a configuration of another release (RivalError). The package follows
// admissionregistration.k8s.io/v1 of Kubernetes 1.37.
//
// # Deleted policies
//
// A policy or mirror stays in the configurations for five seconds after its deletion. Otherwise a
// policy that is deleted and created again would be in force without a webhook for a moment. A
// changed policy takes effect at once.
//
// # Partial discovery failures
//
// The Reconciler keeps the resources of previous rounds. An annotation of the validating
// configuration stores them for a new leader. Kinds of a failed group that no policy matched before
// are included when the group is back.
//
// # Probe
//
// A Reconciler adds one webhook to each configuration, for labelled ConfigMaps of the gateway's
// namespace. Its path ends with the configuration's mark: a hash of the webhooks and a salt that is
// new with each write. An API server that calls the path has loaded the whole configuration. See
// cluster/probe.
package reconcile
