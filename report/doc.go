// Package report answers: how does a verdict look?
//
// It makes the versioned Record of an Outcome (apiVersion quaymaster.dev/v1alpha1,
// documented field by field in docs/record.md), and renders records as text for
// a terminal (Text), outcomes as a tree of every step (Tree), and records as
// JSON (JSON). It decides nothing.
//
// Its promise is the same words in the same order on every run: what a clock or
// a network chooses (durations, costs) stands in the record, and in a text only
// when it is asked for. Names that a stranger chose (references, certificates,
// statements) never reach a terminal with a character that it would act on.
package report
