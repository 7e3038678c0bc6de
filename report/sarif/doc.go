// Package sarif writes the findings of a run in SARIF for code scanners.
//
// The format is the Static Analysis Results Interchange Format, version 2.1.0 (OASIS standard,
// with errata 01). A file has one run with a result for each failure, warning, note and
// exception, at the line and column of the image in its manifest. It meets the additional
// requirements of GitHub's code scanning: each result has a physical location, since GitHub
// rejects the whole file otherwise.
//
// An image that could not be verified makes the invocation unsuccessful, with a notification for
// each. A run without decisions does the same. Equal runs give equal bytes.
package sarif
