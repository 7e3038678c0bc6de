// Package jmespath compiles and evaluates the JMESPath expressions of Kyverno policies.
//
// The language is that of the library github.com/kyverno/go-jmespath (a missing key is an error
// unless `||` or a projection handles it), with the 51 functions that Kyverno 1.19 adds.
// Engine.Compile parses an expression once; unknown functions and wrong numbers of arguments are
// errors then, not when a request arrives.
//
// Holes are variables nested in an expression. Kyverno pastes the inner value into the text of
// the outer expression; here it is bound as data after parsing, so that a value with a quote in
// it stays a value.
//
// The package opens no connection; the clock, the source of randomness and name resolution are
// injected.
package jmespath
