// Package jmespath answers: what does an expression of a Kyverno policy say
// about a JSON document?
//
// The language is JMESPath as the library github.com/kyverno/go-jmespath has
// it (a missing key is an error unless `||` or a projection forgives it),
// with the 51 functions that Kyverno 1.19 adds. An expression is parsed once,
// by Engine.Compile; unknown functions and wrong numbers of arguments are
// errors then, not when a request arrives.
//
// Holes are where a policy nests one variable in another. Kyverno pastes the
// inner value into the text of the outer expression; here it is bound as data
// after parsing, so that a value with a quote in it stays a value.
//
// Nothing here opens a connection; the clock, the source of randomness and
// name resolution are injected.
package jmespath
