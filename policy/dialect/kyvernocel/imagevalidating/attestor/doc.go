// Package attestor compiles the attestors of an ImageValidatingPolicy.
//
// It turns spec.attestors and spec.attestations of Kyverno's image policies (policies.kyverno.io
// v1, v1beta1 and v1alpha1, which share their types) into authorities of package verify, the
// repositories of evidence, and the types of statements. A setting that an authority does not
// support is an error with its path, when the document is read.
//
// Values may be expressions. They are compiled with the document and evaluated with the policy.
// One that fails, or has an unusable result, is an error; the attestor is never omitted. Equal
// values give the same authorities, by pointer, so that each claim query runs once.
//
// The owner of Repositories reads a trusted root from a TUF repository in the background; this
// package opens no connection.
package attestor
