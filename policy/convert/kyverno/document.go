package kyverno

import (
	"encoding/json"

	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
)

// document is a ClusterPolicy or Policy of kyverno.io with its verifyImages fields. Fields
// that cannot be converted stay raw.
type document struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       spec            `json:"spec"`
	Status     json.RawMessage `json:"status"`
}

type spec struct {
	Rules                            []rule          `json:"rules"`
	ApplyRules                       string          `json:"applyRules"`
	FailurePolicy                    string          `json:"failurePolicy"`
	ValidationFailureAction          string          `json:"validationFailureAction"`
	ValidationFailureActionOverrides json.RawMessage `json:"validationFailureActionOverrides"`
	EmitWarning                      bool            `json:"emitWarning"`
	Admission                        *bool           `json:"admission"`
	Background                       *bool           `json:"background"`
	WebhookTimeoutSeconds            int             `json:"webhookTimeoutSeconds"`
	WebhookConfiguration             *webhook        `json:"webhookConfiguration"`
}

type webhook struct {
	FailurePolicy   string          `json:"failurePolicy"`
	TimeoutSeconds  int             `json:"timeoutSeconds"`
	MatchConditions []ivp.Condition `json:"matchConditions"`
}

type rule struct {
	Name                   string            `json:"name"`
	Context                json.RawMessage   `json:"context"`
	Match                  match             `json:"match"`
	Exclude                *match            `json:"exclude"`
	ImageExtractors        json.RawMessage   `json:"imageExtractors"`
	Preconditions          json.RawMessage   `json:"preconditions"`
	CELPreconditions       []ivp.Condition   `json:"celPreconditions"`
	Mutate                 json.RawMessage   `json:"mutate"`
	Validate               json.RawMessage   `json:"validate"`
	Generate               json.RawMessage   `json:"generate"`
	VerifyImages           []json.RawMessage `json:"verifyImages"`
	SkipBackgroundRequests *bool             `json:"skipBackgroundRequests"`
	ReportProperties       map[string]string `json:"reportProperties"`
}

type match struct {
	Any []filter `json:"any"`
	All []filter `json:"all"`
	filter
}

type filter struct {
	Resources    resources       `json:"resources"`
	Subjects     json.RawMessage `json:"subjects"`
	Roles        []string        `json:"roles"`
	ClusterRoles []string        `json:"clusterRoles"`
}

type resources struct {
	Kinds             []string          `json:"kinds"`
	Name              string            `json:"name"`
	Names             []string          `json:"names"`
	Namespaces        []string          `json:"namespaces"`
	Annotations       map[string]string `json:"annotations"`
	Selector          *ivp.Selector     `json:"selector"`
	NamespaceSelector *ivp.Selector     `json:"namespaceSelector"`
	Operations        []string          `json:"operations"`
}
