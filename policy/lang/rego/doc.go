// Package rego evaluates policies in Rego on documents.
//
// The language is Open Policy Agent's (1.17), in its version 0 syntax as policy-controller
// reads it (import rego.v1 makes it the newer one). The policy is a module of the package
// sigstore with the rule isCompliant, which is true, or a set or list of objects with
// result, error and warning of which each result must be true and have no warning, which
// policy-controller takes for a failure. The document is input. A set has only the defined
// results: a rule isCompliant[r] that ends before r, at data that the document lacks, adds
// none, and the omission is not detected. So let the result be a rule with a default, or
// write isCompliant as one that is true.
//
// The operators <, <=, > and >= compare two numbers or two strings, exactly. Anything
// else, and even one such pair in min, max and sort, is an error that ends the evaluation:
// Rego has null < 7 < "3" < [], and a score of "3" would be at least 7. to_number accepts
// numbers and strings alone. No policy can replace these functions by its own.
//
// Functions with network access, access to the machine, nondeterministic results or
// unbounded output are not available; time.now_ns is the caller's time. A policy is
// bounded in size and nesting, and evaluation in time, by interruption; a function that
// ignores it occupies one of few seats until it ends.
package rego
