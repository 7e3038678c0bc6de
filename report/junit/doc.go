// Package junit writes the findings of a run as a JUnit report for CI systems.
//
// The XML follows Jenkins' schema junit-10.xsd, which GitLab, Azure and others read: a suite for
// each object, with a case for each rule and image. A denial is a failure, and an image that
// could not be verified is an error. An image or object without a matching rule, or with an
// exception, is skipped. There are no times, so that equal runs give equal bytes.
//
// A run without decisions has a suite with an error, and a run that verified nothing a skipped
// case with the reason. Neither is without cases.
package junit
