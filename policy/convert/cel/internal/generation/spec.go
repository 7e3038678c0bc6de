package generation

import admission "k8s.io/api/admissionregistration/v1"

// Spec is the specification of a GeneratingPolicy, with its fields in the order in which they are read.
type Spec struct {
	Evaluation       *Evaluation `json:"evaluation,omitempty"`
	ServerSide       bool        `json:"useServerSideApply,omitempty"`
	MatchConstraints struct {
		ResourceRules []admission.RuleWithOperations `json:"resourceRules"`
	} `json:"matchConstraints"`
	MatchConditions []admission.MatchCondition `json:"matchConditions,omitempty"`
	Variables       []admission.Variable       `json:"variables,omitempty"`
	Generate        []Entry                    `json:"generate"`
}

// Evaluation is when objects are made, and how long they stay.
type Evaluation struct {
	Existing    *Enabled `json:"generateExisting,omitempty"`
	Synchronize *Enabled `json:"synchronize,omitempty"`
	Orphan      *Enabled `json:"orphanDownstreamOnPolicyDelete,omitempty"`
	// SkipBackground is false for triggers that were themselves generated; nil means true.
	SkipBackground *bool `json:"skipBackgroundRequests,omitempty"`
}

// Enabled is a setting that is on.
type Enabled struct {
	Enabled bool `json:"enabled"`
}

// Entry makes objects, by an expression or a template.
type Entry struct {
	Expression string    `json:"expression,omitempty"`
	Template   *Template `json:"template,omitempty"`
}

// Template is documents of YAML.
type Template struct {
	Interpolate string `json:"interpolate,omitempty"`
	Value       string `json:"value"`
}
