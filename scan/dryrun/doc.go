// Package dryrun performs dry runs of policies against the objects of a cluster.
//
// Try evaluates a policy alone for all existing objects of the kinds that it matches, as a scan
// does (package scan). It reports the workloads that the policy would deny and its previous
// version allows. Workloads that could not be verified are reported separately, since their
// result is indeterminate. A Comparison compares current results with earlier ones.
//
// Nothing is written, and no object is stored.
package dryrun
