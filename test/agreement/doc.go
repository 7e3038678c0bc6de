// Package agreement asks: do cosign and quaymaster say the same of what cosign
// wrote?
//
// cosign 2 and cosign 3 sign and attest in every format that each can write
// without a network, into three kinds of registry; then both sides are asked
// with equal flags. Where we mean to differ, a row says so and why.
package agreement
