package inventory

import (
	"github.com/quaymaster/quaymaster/report/inventory/internal/policycount"
	"github.com/quaymaster/quaymaster/report/inventory/internal/view"
)

// The content of an inventory.
type (
	// Signer is the signer of an image or of an attestation of it.
	Signer = view.Signer
	// Image is the state of one image: a repository and a digest, or a reference with an unknown
	// digest.
	Image = view.Image
	// Use is the use of an image by a workload.
	Use = view.Use
	// Details are an image with all of its data.
	Details = view.Details
	// Decision is one response to a request.
	Decision = view.Decision
	// DecidedImage is an image of a Decision.
	DecidedImage = view.DecidedImage
	// DecisionDetails are a decision with its evidence.
	DecisionDetails = view.DecisionDetails
	// Policy holds the results of one policy.
	Policy = policycount.Policy
	// PolicyRule holds the results of one rule.
	PolicyRule = policycount.Rule
	// Moment counts the decisions of one minute or hour.
	Moment = view.Moment
	// About describes the inventory's origin.
	About = view.About
	// State is whether workloads run an image.
	State = view.State
)

// The states.
const (
	Running = view.Running
	Refused = view.Refused
	Other   = view.Other
)

// States returns all states.
func States() []State { return view.States() }
