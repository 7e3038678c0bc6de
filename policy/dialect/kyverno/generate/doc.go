// Package generate compiles the Kyverno rules that generate or change other objects.
//
// It compiles the `generate` rules and the `mutate` rules with `targets` of kyverno.io/v1
// (Kyverno 1.19, "Generate Rules" and "Mutate Existing Resources") into policy.Generation and
// policy.Alteration. It only computes the objects: package background writes them, and the API
// server authorizes the writes.
//
// Copies are made by package policy/source, whose rules hold for them. Refused with their path are kinds that are known only with a trigger
// (variables and wildcards in `apiVersion` and `kind`, rules for every kind), subresources that do not
// show in their objects (package policy/subresource), the operation CONNECT, and DELETE or a
// subresource in a rule that reads the requester: the results are derived from what a watch returns,
// which are triggers and their last state. A namespaced Policy creates and changes objects of its own
// namespace alone.
package generate
