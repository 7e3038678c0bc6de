// Package jmespath compiles expressions of JMESPath, in the dialect of Kyverno (1.19), into expressions of CEL
// (cel-spec 0.25, with the libraries of Kyverno's policies).
//
// It works from the syntax tree. The types of values (package shape) decide the form: in
// JMESPath a member of null is null, and a member that an object lacks is an error unless `||`, a function or a
// list handles it. In CEL both are errors, unless a value is optional. An expression without an equal form
// is a *source.Unsupported.
package jmespath
