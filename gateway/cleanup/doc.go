// Package cleanup is the component that deletes objects: of policies with a schedule, and of labels
// for lifetimes. It gives package background/cleanup its cluster, permissions and records, which are
// in Leases, and reports each deletion to the log, metrics, events and the decision log.
//
// It leads by a Lease of its own, whatever other roles the process has, so that two Deployments with
// the role never work at the same time.
package cleanup
