package view

import "github.com/quaymaster/quaymaster/report/inventory/internal/verdict"

// State is whether workloads run an image.
type State string

// The states.
const (
	Running State = "running" // by a workload; objects with it may have been refused as well
	Refused State = "refused" // no workload runs it, and objects with it were refused
	Other   State = "other"   // neither: requests for the image alone
)

// States returns all states.
func States() []State { return []State{Running, Refused, Other} }

// ByState counts images by state.
type ByState struct {
	Running int `json:"running"`
	Refused int `json:"refused"`
	Other   int `json:"other"`
}

// Add counts one image.
func (s *ByState) Add(state State) {
	switch state {
	case Running:
		s.Running++
	case Refused:
		s.Refused++
	case Other:
		s.Other++
	}
}

// Apart counts running images and refused ones, by verdict, and the workloads with each.
type Apart struct {
	Running          verdict.Tally `json:"running"`
	RunningWorkloads int           `json:"runningWorkloads"`
	Refused          verdict.Tally `json:"refused"`
	RefusedWorkloads int           `json:"refusedWorkloads"`
	// Other counts the images of requests for the image alone.
	Other verdict.Tally `json:"other"`
}

// Add counts one image.
func (a *Apart) Add(image *Image) {
	switch image.State() {
	case Running:
		a.Running.Add(image.Verdict)
	case Refused:
		a.Refused.Add(image.Verdict)
	case Other:
		a.Other.Add(image.Verdict)
	}
}
