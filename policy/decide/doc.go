// Package decide decides checks, given the results of their claim queries.
//
// A requirement needs a number of distinct signers, an attestation one statement with a matching
// type, signer and condition. The package is pure: it opens
// no connection and reads no clock.
package decide
