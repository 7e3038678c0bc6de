// Package policyreport converts results to PolicyReports and OpenReports.
//
// It has no client. A Grouping assigns a result to a report (a Place). A Report merges results by
// policy, rule, resource and time. It is encoded as the objects of an API and decoded from them,
// so that replicas and the scan merge into each other's reports without further coordination. The
// objects contain all data that a later merge needs.
//
// The formats are PolicyReport and ClusterPolicyReport v1alpha2 of wgpolicyk8s.io, and Report and
// ClusterReport v1alpha1 of openreports.io, as Policy Reporter reads them: a result without
// resources applies to the report's scope, and any other has exactly one resource.
//
// # Results of the pods of one owner
//
// In the report of a workload, a result without resources is shared. It applies to all pods, to
// the owner and to the controllers between them, whose rules are those of pods with the prefix
// autogen-. An object with another result is listed with its own, until the two agree. Pods are
// neither counted nor named, so that an additional pod causes no write.
//
// The shared result is the first one, or the most frequent of those that arrive together. A newer
// result of a pod replaces it if the policy has changed, or if the owner's newer result agrees (a
// rollout). A pod with an equal result leaves no trace. An older, different result of it that
// arrives later is therefore listed until the pod's next one. No different result is lost.
package policyreport
