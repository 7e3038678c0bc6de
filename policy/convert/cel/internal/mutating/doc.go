// Package mutating converts Kyverno's rules that mutate (kyverno.io/v1, Kyverno 1.19), those about existing objects
// included, into specifications of a MutatingPolicy of policies.kyverno.io/v1.
package mutating
