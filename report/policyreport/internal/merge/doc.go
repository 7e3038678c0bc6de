// Package merge answers: what does a report say after it was told one thing more?
//
// Words are results that a report holds: one for each policy, rule, container and object,
// the newest. In the report of a workload its pods share a word, as the documentation of
// policyreport has it, and who says something else is listed. What has no entry, being
// counted alone, is a Token of a few characters. The shapes of reports (wgpolicyk8s.io/v1alpha2,
// openreports.io/v1alpha1) are policyreport's: here nothing is read and written, and texts
// are bounded already.
package merge
