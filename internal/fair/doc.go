// Package fair answers: who may work next, where many share a few places?
//
// Each place is asked for in the name of a tenant, and where that matters of a
// host. Whoever holds none yet gets a free one; who holds some gets more as long
// as what then stays free is still a third of theirs: one tenant alone may take
// three quarters, two take three sevenths each, and some are always left for who
// comes next. Who waits is let in by how few places the tenant holds, then by how
// long it waits. Whoever wants more places at once than are free is passed by those who
// want less, until its time is over: to keep places for it would let a tenant with large
// claims stop all others.
//
// The rule is that of dynamic thresholds for shared buffers (A. Choudhury and
// E. Hahne, IEEE/ACM Transactions on Networking 6 (2), 1998).
package fair
