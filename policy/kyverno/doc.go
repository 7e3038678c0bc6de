// Package kyverno answers: what does a Kyverno ClusterPolicy or Policy ask of an
// object and its images?
//
// It compiles documents of kyverno.io/v1 and v2beta1 (Kyverno 1.19), and exceptions to
// them, into package policy's form: rules with verifyImages about images, rules with
// validate and mutate about objects, and with generate and mutate.targets about other
// objects. A field that is unknown or cannot be honoured is an error with its path, and
// those on the list of Ignored mean nothing here. What a rule says is compiled by a
// package of its own below or beside this one.
//
// A rule's variables are filled in for each request, each when the first expression
// reads it; what has none is compiled once. What is not in the request comes through
// injected interfaces; nothing here opens a connection.
package kyverno
