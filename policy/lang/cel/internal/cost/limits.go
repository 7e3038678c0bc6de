package cost

import "fmt"

const (
	// MaxCost bounds one evaluation of one expression: the number that Kubernetes
	// allows one call.
	MaxCost = 1_000_000
	// maxText bounds each string and bytes that a call builds, in bytes, and maxItems
	// each list.
	maxText  = 4 << 20
	maxItems = 100_000
	// maxPattern bounds a regular expression that is applied, in bytes.
	maxPattern = 8 << 10
	// maxProgram bounds the instructions that it compiles to. Each takes some 50 bytes.
	maxProgram = 10_000
	// textUnit is the number of bytes that are read or copied for one unit of cost.
	textUnit = 16
	// cheap is the cost below which the lookup of the meter costs more.
	cheap = 16
)

// ExceededError means that an evaluation was stopped because it cost too much.
type ExceededError struct {
	What string // the measured quantity, as in "the items of a list"
	Most uint64 // the bound, in the unit that What implies
}

// Error implements error.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("the bound of %d for %s is exceeded: make the expression simpler, or look at less data", e.Most, e.What)
}
