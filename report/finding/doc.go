// Package finding answers: what is there to tell of a run, one thing at a time?
//
// A Finding is one rule's word on one image or object: what a test report calls a
// case, and a code scanner a result. Of makes them from the records of a run
// (apiVersion quaymaster.dev/v1alpha1, docs/record.md), so that every format of a CI
// system says the same: packages sarif, junit and markdown only spell it.
//
// It promises that the worst finding of an object is the object's answer, and that no
// text of a finding has a character that a terminal acts on or a line break.
package finding
