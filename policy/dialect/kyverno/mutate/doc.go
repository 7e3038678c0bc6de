// Package mutate applies Kyverno rules with `mutate` to objects.
//
// It compiles such rules (kyverno.io/v1, Kyverno 1.19, "Mutate Rules") into package policy's
// Mutation: patchStrategicMerge, patchesJson6902 and foreach. Another package compiles rules with
// targets, which change other objects.
//
// A rule changes an object as a whole or not at all: any error leaves the object unchanged.
package mutate
