// Package cue evaluates policies in CUE on documents.
//
// The language is that of cuelang.org (0.16) with the packages of its library that compute
// and nothing else. A policy holds for a document if the two unify and the document
// already contains the result: a field that the policy names and the document lacks is a
// failure, since by unification alone the policy would supply the required value. Fields
// at the top that the document does not have are the policy's own (before:
// time.Parse(...)), and so are hidden ones, definitions and let. If these depend on data
// that the document lacks, the policy does not hold either: CUE leaves them incomplete.
//
// CUE cannot be interrupted. So a policy with unbounded evaluation is refused before it is
// evaluated: one that refers to itself, combines many alternatives for one field, or is
// nested deep. Documents are bounded in values and in the iterations of loops over them.
// In addition evaluation is bounded in time: an evaluation past its time occupies one of
// few seats until it ends, and with all of them occupied the condition returns an error.
package cue
