// Package report renders and records verdicts.
//
// It builds the versioned Record of an Outcome (apiVersion quaymaster.dev/v1alpha1, documented
// field by field in docs/record.md). It renders records as text for a terminal (Text), outcomes
// as a tree of every step (Tree), and records as JSON (JSON). It makes no decisions.
//
// The output is deterministic. Values that depend on a clock or a network (durations, costs) are
// in the record, and in text only on request. Untrusted names (references, certificates,
// statements) are escaped, so that no control character reaches a terminal.
package report
