// Package junit answers: how do test reports of CI systems show a run?
//
// It writes the XML of JUnit as Jenkins' schema junit-10.xsd has it, which GitLab,
// Azure and the others read: a suite for each object, in it a case for each rule and
// image. Denied is a failure, could-not-look an error, and what nobody asks about or
// an exception leaves alone is skipped. It has no times, so that equal runs give equal
// bytes.
//
// A run in which nothing was decided has a suite with an error, and one in which
// nothing was verified a skipped case that says so: neither is without cases.
package junit
