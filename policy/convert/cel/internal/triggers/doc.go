// Package triggers reads the parts that Kyverno's rules of all types share (kyverno.io/v1, Kyverno 1.19): the kinds
// that they match, the meaning of the names in their expressions, and their preconditions.
package triggers
