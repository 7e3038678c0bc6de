package cel

import admission "k8s.io/api/admissionregistration/v1"

// spec is that of a ValidatingPolicy, with the fields in the order in which they are read.
type spec struct {
	FailurePolicy     string                       `json:"failurePolicy"`
	ValidationActions []admission.ValidationAction `json:"validationActions"`
	Evaluation        *evaluation                  `json:"evaluation,omitempty"`
	Webhook           *webhook                     `json:"webhookConfiguration,omitempty"`
	Autogen           *autogenFields               `json:"autogen,omitempty"`
	MatchConstraints  struct {
		ResourceRules []admission.RuleWithOperations `json:"resourceRules"`
	} `json:"matchConstraints"`
	MatchConditions  []admission.MatchCondition  `json:"matchConditions,omitempty"`
	Variables        []admission.Variable        `json:"variables,omitempty"`
	Validations      []admission.Validation      `json:"validations"`
	AuditAnnotations []admission.AuditAnnotation `json:"auditAnnotations,omitempty"`
}

type webhook struct {
	TimeoutSeconds int32 `json:"timeoutSeconds"`
}

type enabled struct {
	Enabled bool `json:"enabled"`
}

type evaluation struct {
	Admission  *enabled `json:"admission,omitempty"`
	Background *enabled `json:"background,omitempty"`
}

type autogenFields struct {
	PodControllers struct {
		Controllers []string `json:"controllers"`
	} `json:"podControllers"`
}

func (s *spec) setTimeout(seconds *int32) {
	if seconds != nil && s.Webhook == nil {
		s.Webhook = &webhook{*seconds}
	}
}

func (s *spec) setEvaluation(atAdmission, inBackground *bool) {
	one := func(is *bool) *enabled {
		if is == nil || *is {
			return nil
		}
		return &enabled{}
	}
	if e := (evaluation{one(atAdmission), one(inBackground)}); e.Admission != nil || e.Background != nil {
		s.Evaluation = &e
	}
}
