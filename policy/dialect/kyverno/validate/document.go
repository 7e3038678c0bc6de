package validate

import (
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/action"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/podsecurity"
)

// The documents in their written form. JSON of a rule language stays `any`.

// Document is a rule as it is written.
type Document struct {
	rule.Document
	CELPreconditions []matchCondition `json:"celPreconditions"`
	Validate         *validation      `json:"validate"`
}

type validation struct {
	FailureAction           string              `json:"failureAction"`
	FailureActionOverrides  []action.Override   `json:"failureActionOverrides"`
	AllowExistingViolations *bool               `json:"allowExistingViolations"`
	Message                 string              `json:"message"`
	Manifests               *manifests.Document `json:"manifests"`
	Assert                  any                 `json:"assert"`
	ForEach                 []forEach           `json:"foreach"`
	Pattern                 any                 `json:"pattern"`
	AnyPattern              []any               `json:"anyPattern"`
	Deny                    *deny               `json:"deny"`
	PodSecurity             *podSecurity        `json:"podSecurity"`
	CEL                     *celDocument        `json:"cel"`
}

type deny struct {
	Conditions any `json:"conditions"`
}

type forEach struct {
	List          string                 `json:"list"`
	ElementScope  *bool                  `json:"elementScope"`
	Context       []rulecontext.Document `json:"context"`
	Preconditions any                    `json:"preconditions"`
	Pattern       any                    `json:"pattern"`
	AnyPattern    []any                  `json:"anyPattern"`
	Deny          *deny                  `json:"deny"`
	ForEach       []forEach              `json:"foreach"`
}

type podSecurity struct {
	Level   string                  `json:"level"`
	Version string                  `json:"version"`
	Exclude []podsecurity.Exclusion `json:"exclude"`
}

type matchCondition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

type celDocument struct {
	Expressions      []celExpression   `json:"expressions"`
	Variables        []celVariable     `json:"variables"`
	AuditAnnotations []auditAnnotation `json:"auditAnnotations"`
	ParamKind        *paramKind        `json:"paramKind"`
	ParamRef         *paramRef         `json:"paramRef"`
	Generate         *bool             `json:"generate"`
}

type celExpression struct {
	Expression        string `json:"expression"`
	Message           string `json:"message"`
	MessageExpression string `json:"messageExpression"`
	Reason            string `json:"reason"`
}

type celVariable struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

type auditAnnotation struct {
	Key             string `json:"key"`
	ValueExpression string `json:"valueExpression"`
}

type paramKind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

type paramRef struct {
	Name                    string         `json:"name"`
	Namespace               string         `json:"namespace"`
	Selector                *labelSelector `json:"selector"`
	ParameterNotFoundAction string         `json:"parameterNotFoundAction"`
}

type labelSelector struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchExpressions []any             `json:"matchExpressions"`
}
