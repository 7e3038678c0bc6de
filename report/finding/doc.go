// Package finding converts the records of a run to findings for CI systems.
//
// A Finding is the result of one rule for one image or object: a case of a test report, or a
// result of a code scanner. Of makes findings from the records of a run (apiVersion
// quaymaster.dev/v1alpha1, docs/record.md), so that all CI formats have the same content.
// Packages sarif, junit and markdown only encode it.
//
// The worst finding of an object equals the object's answer. No text of a finding contains
// control characters or line breaks.
package finding
