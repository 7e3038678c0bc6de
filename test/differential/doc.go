// Package differential asks: is there an image that cosign or notation refuses
// and that we accept?
//
// Cases are drawn at random: how an image is signed, by whom, with which log
// entries and timestamps, what is damaged or exchanged afterwards, and what is
// asked. Each goes to cosign 2, cosign 3 or notation, and to quaymaster. Where we
// accept what one of them refuses, a row of a table says why that is right; where
// we refuse what they accept, a row says so, with our reason code. A row whose
// example no longer shows the difference fails.
//
// A case is known by two numbers, which a failure prints:
//
//	SEED=7 CASE=123 go test -run TestDifferential/cases ./differential
//
// make differential CASES=5000 SEED=7 draws more of them.
package differential
