// Package generation writes the `generate` of Kyverno's rules (kyverno.io/v1, Kyverno 1.19) as entries of
// `generate` of a GeneratingPolicy of policies.kyverno.io/v1.
//
// An object of data becomes a template with its variables as expressions in (( and )); a copy becomes
// generator.Apply of what resource.Get or resource.List reads. What cannot be said exactly is a
// source.Unsupported error with the path.
package generation
