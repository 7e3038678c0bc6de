// Package agreement asks: do cosign and quaymaster agree on cosign's
// signatures?
//
// cosign 2 and cosign 3 sign and attest in every format that each can write
// without a network, into three kinds of registry; then both sides are asked
// with equal flags. Where we differ on purpose, a row has the reason.
package agreement
