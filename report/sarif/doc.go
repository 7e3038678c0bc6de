// Package sarif answers: how do code scanners read a run?
//
// It writes the Static Analysis Results Interchange Format, version 2.1.0 (OASIS
// standard, with errata 01), one run with a result for each failure, warning, note and
// exception, at the line and column of the image in its manifest. What GitHub's code
// scanning asks of a file beyond the standard is met: each result has a physical
// location, or it refuses the whole file.
//
// What could not be looked at makes the invocation unsuccessful, with a notification
// for each; so does a run in which nothing was decided. Equal runs give equal bytes.
package sarif
