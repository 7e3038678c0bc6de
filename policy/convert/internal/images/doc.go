// Package images computes the images of a rule in CEL, without those of more specific
// rules.
//
// An expression is one of an ImageValidatingPolicy's matchImageReferences
// (policies.kyverno.io/v1), over ref. Scopes are those of containers-policy.json(5).
package images
