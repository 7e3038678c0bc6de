// Package bill answers: what is in this program?
//
// The toolchain writes into each Go program which modules it was linked from, at
// which versions and with which sums. Write says that as an SPDX 2.3 document in
// JSON (https://spdx.github.io/spdx-spec/v2.3/). Nothing is guessed from folders,
// and equal programs give equal bytes.
package bill
