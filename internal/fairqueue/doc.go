// Package fairqueue is a fair queue for a limited number of seats.
//
// Each claim has a tenant, and optionally a host. A tenant without a seat gets a free one. A
// tenant with seats gets more while the remaining free seats are at least a third of its own.
// So one tenant alone may hold three quarters, two may hold three sevenths each, and some seats
// remain for the next tenant. Waiting claims are admitted in the order of their tenants' seats,
// the fewest first, then by waiting time. A claim for more seats than are free does not block
// smaller claims, and may time out: reserving seats for it would let a tenant with large claims
// stop all others.
//
// The rule is that of dynamic thresholds for shared buffers (A. Choudhury and E. Hahne, IEEE/ACM
// Transactions on Networking 6 (2), 1998).
package fairqueue
