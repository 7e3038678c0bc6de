// Package converttest tests the conversion of each format.
//
// It compares converted policies with golden files, checks the refusal of each invalid
// variant, and evaluates which images the written policies match.
//
// Policies are passed to convert.Convert as by a user; the expressions of
// matchImageReferences (policies.kyverno.io/v1) are evaluated as the dialect does.
package converttest
