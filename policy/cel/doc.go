// Package cel answers: what does an expression of a policy say about an object?
//
// The language is the Common Expression Language (https://cel.dev, cel-spec 0.25)
// with the libraries that Kubernetes 1.36 adds (KEP 3488, "CEL for admission
// control": lists, regex, URLs, quantities, IP addresses, CIDR, formats, semantic
// versions, sets, optional values) and those of Kyverno's policies.kyverno.io
// (SDK of 2026).
//
// A dialect makes one Env when it starts and keeps it. Each document gets a Scope
// of it, in which its variables are declared in their order and its expressions
// compiled, once: a fault is a CompileError with the path of the field. A request
// makes an Activation, the values of the declared variables and what the functions
// do this time, and evaluates Programs in it.
//
// Evaluation is three-valued. A function that could count only in part returns a
// Count, and an expression that comes out the same whatever the rest would have
// said is decided; otherwise its error wraps an UnknownError with the gaps. A
// run-time error is an error and never false.
//
// Nothing here opens a connection, reads a clock or draws random numbers: who
// evaluates hands those in. Expressions, their cost, and what functions parse,
// expand or build are bounded.
package cel
