// Package rego answers: does a document say what a policy in Rego wants of it?
//
// The language is Open Policy Agent's (1.17), in its version 0 syntax as
// policy-controller reads it (import rego.v1 makes it the newer one). The policy
// is a module of the package sigstore with the rule isCompliant, which is true,
// or a set or list of objects with result, error and warning of which each result
// must be true. The document is input. A set has the results that are defined: a rule
// isCompliant[r] that ends before r, at what the document does not say, adds none, and
// nobody misses it among others. So let the result be a rule with a default, or
// write isCompliant as one that is true.
//
// The operators <, <=, > and >= compare two numbers or two strings, exactly. Anything
// else, and so much as one such pair in min, max and sort, is an error that ends the
// evaluation: Rego has null < 7 < "3" < [], and a score of "3" would be at least 7.
// to_number takes numbers and strings alone. No policy can put a function of its own in
// their place.
//
// Functions that reach out, read the machine, are different each time or make much
// of little without end are not there; time.now_ns is the time that the caller gives.
// A policy is bounded in size and nesting, and evaluation in time, by interrupting
// it; a function that does not heed that keeps one of few places until it ends.
package rego
