// Package mutate answers: what does a rule of Kyverno's with `mutate` make of an
// object?
//
// It compiles such rules (kyverno.io/v1, Kyverno 1.19, "Mutate Rules") into package
// policy's Mutation: patchStrategicMerge, patchesJson6902 and foreach. Rules with
// targets, which change other objects, are another package's.
//
// A rule changes an object as a whole or not at all: an error anywhere in it leaves
// the object as it was.
package mutate
