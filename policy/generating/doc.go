// Package generating answers: which other objects are to be there, or to be
// changed, because an object was made?
//
// It compiles the `generate` rules and the `mutate` rules with `targets` of
// kyverno.io/v1 (Kyverno 1.19, "Generate Rules" and "Mutate Existing Resources")
// into policy.Generation and policy.Alteration. It decides and does nothing: who
// brings about what it says is package background, and what may be brought about is
// the API server's to say.
//
// Refused with their path are `clone` and `cloneList`, kinds that are known only
// when a trigger comes (variables and wildcards in `apiVersion` and `kind`, rules
// about every kind), subresources, and the operations DELETE and CONNECT: what is
// brought about is derived from triggers that are there. A namespaced Policy makes
// and changes objects of its own namespace alone.
package generating
