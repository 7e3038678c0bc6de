// Package fuzz asks: does every fuzz target run, and is a failure one?
//
// short.sh is what "make fuzz-short" has go test run in place of test binaries: each
// target for a bounded number of inputs, without instrumentation, so that the binaries
// are built from the same packages as the unit tests. "make fuzz" runs longer, and is led by
// coverage.
package fuzz
