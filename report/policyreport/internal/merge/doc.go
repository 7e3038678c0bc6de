// Package merge merges results into the content of a report.
//
// A report holds the newest result for each policy, rule, container and object. In the report of
// a workload its pods share a result, and objects with a different one are listed (see package
// policyreport). A result that is only counted has no entry; it is stored as a Token of a few
// characters. Package policyreport defines the formats of reports (wgpolicyk8s.io/v1alpha2,
// openreports.io/v1alpha1). This package does no I/O, and its texts are already bounded.
package merge
