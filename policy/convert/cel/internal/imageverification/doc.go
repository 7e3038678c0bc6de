// Package imageverification writes the conditions of verifyImages rules (kyverno.io/v1, Kyverno 1.19) on
// attestations as validations of an ImageValidatingPolicy (policies.kyverno.io/v1).
//
// The members of a predicate are names in such a condition; in the result they are members of the payload that
// extractPayload returns. A condition that cannot be evaluated denies in both forms. One without an equal form is a
// source.Unsupported error with the path below the entry.
package imageverification
