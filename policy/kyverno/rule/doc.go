// Package rule answers: does a rule of Kyverno's apply to an object, and what do its
// expressions read?
//
// It compiles what rules of all kinds have in common (kyverno.io/v1, Kyverno 1.19):
// match and exclude, context, preconditions and imageExtractors. What a rule then
// does is for packages above it.
package rule
