// Package differential asks: is there an image that cosign or notation refuses
// and that we accept?
//
// Cases are drawn at random: the form and signer of an image's signature, its log
// entries and timestamps, the damage or exchange afterwards, and the
// question. Each goes to cosign 2, cosign 3 or notation, and to quaymaster. Where we
// accept an image that one of them refuses, a row of a table gives the reason; where
// we refuse one that they accept, a row does so, with our reason code. A row with an
// example that no longer shows the difference fails.
//
// A case is known by two numbers, which a failure prints:
//
//	SEED=7 CASE=123 go test -run TestDifferential/cases ./differential
//
// make differential CASES=5000 SEED=7 draws more of them.
package differential
