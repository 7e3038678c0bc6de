// Package price answers: what does a call in an expression of CEL cost, before it
// is made?
//
// The library's own tracker (cel-go's CostTracking, which Kubernetes uses) counts a
// call when the work is done and the memory is taken, and watches every part of an
// expression, which trebles its time. Here only calls whose cost depends on their
// arguments are looked at, beforehand, and those are refused whose result would be
// out of proportion. The numbers are those of Kubernetes: a unit is about 0.1
// microseconds, and a call about the size of what it looks at.
package price
