// Package lease answers: which replica does what must be done once, and which
// replicas are there?
//
// A Leader runs a function on one replica at a time; Members registers this
// replica and lists the others. Both keep Leases of coordination.k8s.io/v1 in
// the gateway's own namespace. Who renews a Lease is judged alive by the clock of
// who watches, from the moment that a renewal was seen, so that clocks need not
// agree.
package lease
