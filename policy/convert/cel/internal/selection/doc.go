// Package selection writes the match and exclude blocks of Kyverno rules (kyverno.io/v1, Kyverno 1.19)
// as match constraints and match conditions of policies.kyverno.io/v1.
//
// A construct without an exact form is a source.Unsupported error with its path.
package selection
