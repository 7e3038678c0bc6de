// Package rule compiles the common parts of Kyverno rules.
//
// These are the fields that rules of all types share (kyverno.io/v1, Kyverno 1.19): match and
// exclude, context, preconditions and imageExtractors. The packages above it implement the
// actions of rules.
package rule
