// Package cost computes the cost of a CEL call before the call runs.
//
// The library's own tracker (cel-go's CostTracking, which Kubernetes uses) counts a call after
// the work is done and the memory is allocated. It also observes every part of an expression,
// which trebles the evaluation time. This package checks only calls with a cost that depends on
// their arguments, before they run, and refuses those with a disproportionate result. The numbers
// are those of Kubernetes: a unit is about 0.1 microseconds, and a call costs about the size of
// the data that it reads.
package cost
