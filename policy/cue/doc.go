// Package cue answers: does a document say what a policy in CUE wants of it?
//
// The language is that of cuelang.org (0.16) with the packages of its library
// that compute and nothing else. A policy holds for a document if the two unify
// and the document already says all of it: a field that the policy names and the
// document lacks is a failure, for by unification alone the policy would supply
// what it asks for. Fields at the top that the document does not have are the
// policy's own (before: time.Parse(...)), and so are hidden ones, definitions and
// let. What they make of what the document does not have does not hold either: CUE leaves
// it open.
//
// CUE cannot be interrupted. So a policy whose evaluation has no bound is refused
// before it is evaluated: one that refers to itself, combines many alternatives for
// one field, or is nested deep; and documents are bounded in values and in the rounds
// that loops would go over them. Beside that evaluation is bounded in time: what goes
// on after its time keeps one of few places until it ends, and with all of them taken
// the condition cannot be asked.
package cue
