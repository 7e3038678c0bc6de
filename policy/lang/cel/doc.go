// Package cel compiles and evaluates the CEL expressions of policies.
//
// The language is the Common Expression Language (https://cel.dev, cel-spec 0.25) with the
// libraries that Kubernetes 1.37 adds (KEP 3488, "CEL for admission control": lists, regex, URLs,
// quantities, IP addresses, CIDR, formats, semantic versions, sets, optional values) and those of
// Kyverno's policies.kyverno.io (SDK of 2026).
//
// A dialect creates one Env at start. Each document gets a Scope of it, which declares the
// variables in their order and compiles each expression once: a fault is a CompileError with the
// path of the field. Each request creates an Activation, with the values of the declared
// variables and the implementations of the functions, and evaluates Programs in it.
//
// Evaluation is three-valued. A function with an incomplete count returns a Count. An expression
// with the same result for every possible value is decided; otherwise its error wraps an
// UnknownError with the gaps. A run-time error is an error and never false.
//
// The package opens no connection, reads no clock and draws no random numbers: the caller
// supplies those. Expressions, their cost, and the output of functions that parse, expand or
// build are bounded.
package cel
