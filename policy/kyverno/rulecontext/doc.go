// Package rulecontext answers: what do the variables of a Kyverno rule mean for an
// object?
//
// It compiles the entries of a rule's context (kyverno.io/v1, Kyverno 1.19,
// "External Data Sources") and builds what expressions are evaluated on: the
// request, the images, and the entries. It also says what expressions read of the
// object, for subjects of which little is known.
package rulecontext
