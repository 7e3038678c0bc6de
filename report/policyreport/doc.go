// Package policyreport answers: how do results become PolicyReports and OpenReports?
//
// It has no client. A Grouping says in which report a result stands (a Place), a
// Report takes results in by policy, rule, resource and time, and is encoded as the
// objects of an API and decoded from them, so that whoever reads a report merges into
// what others have written: replicas and the scan share reports by nothing else. All
// that a later merge needs stands in the objects.
//
// The shapes are PolicyReport and ClusterPolicyReport v1alpha2 of wgpolicyk8s.io, and
// Report and ClusterReport v1alpha1 of openreports.io, as Policy Reporter reads them: a
// result without resources speaks of the report's scope, one with resources has one.
//
// # What pods of one owner say
//
// In the report of a workload, a result without resources is what its pods say, and
// with them everybody who is not listed: the owner, and what stands between them,
// whose rules are those of pods with autogen- before the name. Who says something else
// is listed with a result of its own, until it says the same. Pods are not counted and
// not named, so that a pod more is no write.
//
// The shared word is the first one, or of those that come at once the most frequent.
// It is replaced when pods say something newer under a policy that has changed, or what
// the owner says now as well (a rollout). A pod that agrees leaves no trace: an older word
// of it that comes after is listed, until it speaks again. Nothing that differs is lost.
package policyreport
