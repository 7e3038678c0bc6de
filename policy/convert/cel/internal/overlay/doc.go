// Package overlay writes the patterns of Kyverno policies as expressions in CEL.
//
// The patterns are Kyverno's overlay patterns (1.19, "Validate Rules"), the expressions those of
// policies.kyverno.io with the optional values of cel-go. A missing field is null in a pattern and
// an error in CEL, so that each access says what a missing field means. A value of a type that no
// pattern of text takes, such as a list, does not match; in CEL it is an error, and both deny.
//
// What cannot be said exactly is a source.Unsupported error with the path.
package overlay
