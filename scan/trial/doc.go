// Package trial answers: what of that which runs would a policy stop, and which verdicts
// would change?
//
// Try asks a policy alone about everything there is of the kinds that it speaks of, as a
// scan does (package scan), and tells the workloads that it would stop and that the version
// before lets run. What could not be looked at is told apart: nobody knows what becomes of
// it. Compare holds what policies say now against what was said of the same before.
//
// Nothing is written anywhere, and no object is kept.
package trial
