package cel

import (
	"encoding/json"
	"slices"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/podsecurity"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/requirement"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/selection"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/action"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/validate"
)

// document is a ClusterPolicy or Policy; the compiler of the dialect has read all of its fields.
type document struct {
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Rules                   []json.RawMessage `json:"rules"`
		ApplyRules              string            `json:"applyRules"`
		FailurePolicy           string            `json:"failurePolicy"`
		ValidationFailureAction string            `json:"validationFailureAction"`
		Overrides               []action.Override `json:"validationFailureActionOverrides"`
		EmitWarning             bool              `json:"emitWarning"`
		Admission               *bool             `json:"admission"`
		Background              *bool             `json:"background"`
		WebhookTimeoutSeconds   *int32            `json:"webhookTimeoutSeconds"`
		WebhookConfiguration    *struct {
			FailurePolicy   string                     `json:"failurePolicy"`
			TimeoutSeconds  *int32                     `json:"timeoutSeconds"`
			MatchConditions []admission.MatchCondition `json:"matchConditions"`
		} `json:"webhookConfiguration"`
	} `json:"spec"`
}

// ruleDocument is a rule that validates.
type ruleDocument struct {
	Name             string                     `json:"name"`
	Match            match.Document             `json:"match"`
	Exclude          *match.Document            `json:"exclude"`
	CELPreconditions []admission.MatchCondition `json:"celPreconditions"`
	Context          []rulecontext.Document     `json:"context"`
	Preconditions    any                        `json:"preconditions"`
	Validate         struct {
		FailureAction           string                `json:"failureAction"`
		FailureActionOverrides  []action.Override     `json:"failureActionOverrides"`
		AllowExistingViolations *bool                 `json:"allowExistingViolations"`
		Message                 string                `json:"message"`
		Pattern                 any                   `json:"pattern"`
		AnyPattern              []any                 `json:"anyPattern"`
		CEL                     *celExpressions       `json:"cel"`
		PodSecurity             *podsecurity.Document `json:"podSecurity"`

		Deny    *requirement.Deny  `json:"deny"`
		ForEach []requirement.Loop `json:"foreach"`
	} `json:"validate"`
}

type celExpressions struct {
	Expressions      []admission.Validation      `json:"expressions"`
	Variables        []admission.Variable        `json:"variables"`
	AuditAnnotations []admission.AuditAnnotation `json:"auditAnnotations"`
	ParamKind        *paramKind                  `json:"paramKind"`
	ParamRef         *paramRef                   `json:"paramRef"`
}

// ruleText is a rule as it is written, or a part of it, and its path.
type ruleText struct {
	raw  json.RawMessage
	from ruleDocument
	at   string
	// part is above zero for the part of a rule about other kinds than pods.
	part   int
	effect effect
	// after are conditions that no earlier rule applies.
	after []string
	// err is a construct without a form.
	err error
}

func (r *ruleDocument) selected() selection.Rule {
	return selection.Rule{Match: r.Match, Exclude: r.Exclude}
}

// operations are those at which the rule is evaluated.
func (r *ruleDocument) operations() []string {
	if v := &r.Validate; v.CEL != nil || v.Deny != nil || len(v.ForEach) > 0 {
		return validate.Operations()
	}
	return []string{"CREATE", "UPDATE", "CONNECT"}
}

// settings refuses settings of a policy that have no form.
func (c *converter) settings(d source.Document, doc *document) {
	if len(doc.Spec.Overrides) > 0 && slices.ContainsFunc(doc.Spec.Rules, func(raw json.RawMessage) bool { return hasField(raw, "verifyImages") }) {
		c.Refuse(d.At("spec.validationFailureActionOverrides"), "actions for some namespaces, of rules that verify images", "split the policy, or keep it")
	}
}

func hasField(raw json.RawMessage, name string) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(raw, &fields) == nil && len(fields[name]) > 0 && string(fields[name]) != "null"
}
