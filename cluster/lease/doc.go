// Package lease elects a leader among the replicas, and maintains the list of replicas.
//
// A Leader runs a function on one replica at a time. Members registers this replica and lists the
// others. Both use Leases of coordination.k8s.io/v1 in the gateway's own namespace. An observer
// measures the age of a renewal by its own clock, from the moment of its observation, so that
// clocks need not be synchronized.
package lease
