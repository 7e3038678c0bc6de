// Package images answers: which images does a rule of another system take, when more
// specific rules take some of them, and how is that said in CEL?
//
// An expression is one of an ImageValidatingPolicy's matchImageReferences
// (policies.kyverno.io/v1), over ref. Scopes are those of containers-policy.json(5).
package images
