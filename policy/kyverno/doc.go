// Package kyverno answers: what does a Kyverno ClusterPolicy or Policy ask of
// the images of an object?
//
// It compiles documents of kyverno.io/v1 and v2beta1 (Kyverno 1.19) into
// package policy's form. Rules with verifyImages are ours, every field of them;
// a field that is unknown or cannot be honoured is an error with its path, and
// those on the list of Ignored mean nothing here. Rules of other kinds are left
// alone and named in policy.Policy.NotOurs.
//
// A rule's variables are filled in for each request; what has none is compiled
// once. ConfigMaps come through an injected Lookup; nothing here opens a
// connection.
package kyverno
