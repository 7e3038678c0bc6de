// Package background is the component that runs rules about other objects: Kyverno's generate
// rules and mutate-existing rules. It gives package background its cluster, and stores its progress
// in a Lease.
package background
