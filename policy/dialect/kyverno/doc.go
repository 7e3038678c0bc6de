// Package kyverno compiles Kyverno ClusterPolicies and Policies for objects and their images.
//
// It compiles documents of kyverno.io/v1 and v2beta1 (Kyverno 1.19), and exceptions to them, into
// package policy's form: rules with verifyImages for images, rules with validate and mutate for
// objects, and with generate and mutate.targets for other objects. A field that is unknown or
// cannot be honoured is an error with its path; fields on the list of Ignored have no effect. The
// parts of a rule are compiled by packages of their own, below or next to this one.
//
// A rule's variables are resolved for each request, each when the first expression reads it; a
// rule without variables is compiled once. Data outside of the request comes through injected
// interfaces; the package opens no connection.
package kyverno
