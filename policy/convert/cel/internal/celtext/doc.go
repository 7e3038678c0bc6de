// Package celtext writes expressions of CEL (the Common Expression Language, cel-spec 0.25) as a person does: literals,
// paths of members that may be missing, matches with wildcards, conjunctions, and lines of a bounded length.
package celtext
