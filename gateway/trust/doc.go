// Package trust keeps the trust for signatures current: the prover of the newest trusted root, and
// the TUF repositories that policies name.
package trust
