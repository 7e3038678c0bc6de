// Package jsonpatch writes the operations of Kyverno's mutation rules (`patchesJson6902` and `foreach`,
// kyverno.io/v1, Kyverno 1.19; RFC 6902) as JSON patches of a MutatingPolicy.
//
// Unlike RFC 6902, Kyverno makes missing parents, ignores the removal of nothing, and counts a negative index
// from the end: each is written out. What cannot be said exactly is a source.Unsupported error with the path.
package jsonpatch
