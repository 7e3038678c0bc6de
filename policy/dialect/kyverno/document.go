package kyverno

import (
	"encoding/json"
	"time"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/action"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
)

// The documents as they are written. Fields that are JSON of a rule language
// stay `any`; everything else has its type, so that decoding finds mistakes.

type policyDocument struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       spec            `json:"spec"`
	Status     json.RawMessage `json:"status,omitempty"`
}

// metadata is not decoded strictly: the API server adds to it.
type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations"`
	Labels      map[string]any    `json:"labels"`
	// Created is null in a document that is no cluster's yet.
	Created *time.Time `json:"creationTimestamp"`
}

type spec struct {
	Rules                            []json.RawMessage     `json:"rules"`
	ApplyRules                       string                `json:"applyRules"`
	FailurePolicy                    string                `json:"failurePolicy"`
	ValidationFailureAction          string                `json:"validationFailureAction"`
	ValidationFailureActionOverrides []action.Override     `json:"validationFailureActionOverrides"`
	EmitWarning                      *bool                 `json:"emitWarning"`
	Admission                        *bool                 `json:"admission"`
	Background                       *bool                 `json:"background"`
	SchemaValidation                 *bool                 `json:"schemaValidation"`
	WebhookTimeoutSeconds            *int32                `json:"webhookTimeoutSeconds"`
	MutateExistingOnPolicyUpdate     *bool                 `json:"mutateExistingOnPolicyUpdate"`
	GenerateExistingOnPolicyUpdate   *bool                 `json:"generateExistingOnPolicyUpdate"`
	GenerateExisting                 *bool                 `json:"generateExisting"`
	UseServerSideApply               *bool                 `json:"useServerSideApply"`
	WebhookConfiguration             *webhookConfiguration `json:"webhookConfiguration"`
}

type webhookConfiguration struct {
	FailurePolicy   string           `json:"failurePolicy"`
	TimeoutSeconds  *int32           `json:"timeoutSeconds"`
	MatchConditions []matchCondition `json:"matchConditions"`
}

type matchCondition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

type imagesRule struct {
	Name                   string                      `json:"name"`
	Context                []rulecontext.Document      `json:"context"`
	Match                  match.Document              `json:"match"`
	Exclude                *match.Document             `json:"exclude"`
	ImageExtractors        map[string][]rule.Extractor `json:"imageExtractors"`
	Preconditions          any                         `json:"preconditions"`
	CELPreconditions       []any                       `json:"celPreconditions"`
	Mutate                 any                         `json:"mutate"`
	Validate               any                         `json:"validate"`
	Generate               any                         `json:"generate"`
	VerifyImages           []any                       `json:"verifyImages"`
	SkipBackgroundRequests *bool                       `json:"skipBackgroundRequests"`
	ReportProperties       map[string]string           `json:"reportProperties"`
}
