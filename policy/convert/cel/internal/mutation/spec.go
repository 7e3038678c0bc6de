package mutation

import (
	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Spec is the specification of a MutatingPolicy, with its fields in the order in which they are read.
type Spec struct {
	FailurePolicy    string      `json:"failurePolicy,omitempty"`
	Evaluation       *Evaluation `json:"evaluation,omitempty"`
	Webhook          any         `json:"webhookConfiguration,omitempty"`
	Autogen          any         `json:"autogen,omitempty"`
	MatchConstraints struct {
		ResourceRules []admission.RuleWithOperations `json:"resourceRules"`
	} `json:"matchConstraints"`
	MatchConditions  []admission.MatchCondition `json:"matchConditions,omitempty"`
	Variables        []admission.Variable       `json:"variables,omitempty"`
	Targets          *Targets                   `json:"targetMatchConstraints,omitempty"`
	TargetConditions []admission.MatchCondition `json:"targetMatchConditions,omitempty"`
	Mutations        []Mutation                 `json:"mutations"`
}

// Targets select existing objects.
type Targets struct {
	ResourceRules  []admission.NamedRuleWithOperations `json:"resourceRules"`
	ObjectSelector *meta.LabelSelector                 `json:"objectSelector,omitempty"`
}

// Existing are the objects that a policy changes in place of those of requests.
type Existing struct {
	Targets    Targets
	Conditions []admission.MatchCondition
	// SkipBackground is false for triggers that were themselves generated; nil means true.
	SkipBackground *bool
}

// Evaluation is how a MutatingPolicy is evaluated.
type Evaluation struct {
	MutateExisting *Enabled `json:"mutateExisting,omitempty"`
	SkipBackground *bool    `json:"skipBackgroundRequests,omitempty"`
	ServerSide     bool     `json:"useServerSideApply,omitempty"`
}

// Enabled is a setting that is on.
type Enabled struct {
	Enabled bool `json:"enabled"`
}
