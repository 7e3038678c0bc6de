// Package rulecontext resolves the variables of Kyverno rules for an object.
//
// It compiles the entries of a rule's context (kyverno.io/v1, Kyverno 1.19, "External Data
// Sources") and builds the data for expressions: the request, the images, and the entries. It
// also lists the object fields that expressions read, for subjects with few known fields.
package rulecontext
