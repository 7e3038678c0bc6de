package kyverno

import (
	"encoding/json"

	"github.com/quaymaster/quaymaster/policy/convert/internal/said"
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
	FailurePolicy   string           `json:"failurePolicy"`
	TimeoutSeconds  int              `json:"timeoutSeconds"`
	MatchConditions []said.Condition `json:"matchConditions"`
}

type rule struct {
	Name                   string            `json:"name"`
	Context                json.RawMessage   `json:"context"`
	Match                  match             `json:"match"`
	Exclude                *match            `json:"exclude"`
	ImageExtractors        json.RawMessage   `json:"imageExtractors"`
	Preconditions          json.RawMessage   `json:"preconditions"`
	CELPreconditions       []said.Condition  `json:"celPreconditions"`
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
	Selector          *said.Selector    `json:"selector"`
	NamespaceSelector *said.Selector    `json:"namespaceSelector"`
	Operations        []string          `json:"operations"`
}

// entry is one entry of verifyImages. The pointers have a default.
type entry struct {
	FailureAction        string            `json:"failureAction"`
	Type                 string            `json:"type"`
	Image                string            `json:"image"`
	Key                  string            `json:"key"`
	Roots                string            `json:"roots"`
	Subject              string            `json:"subject"`
	Issuer               string            `json:"issuer"`
	AdditionalExtensions map[string]string `json:"additionalExtensions"`
	Annotations          map[string]string `json:"annotations"`
	ImageReferences      []string          `json:"imageReferences"`
	SkipImageReferences  []string          `json:"skipImageReferences"`
	Attestors            []set             `json:"attestors"`
	Attestations         []attestation     `json:"attestations"`
	Repository           string            `json:"repository"`
	CosignOCI11          *bool             `json:"cosignOCI11"`
	MutateDigest         *bool             `json:"mutateDigest"`
	VerifyDigest         *bool             `json:"verifyDigest"`
	Required             *bool             `json:"required"`
	UseCache             *bool             `json:"useCache"`
	Credentials          *credentials      `json:"imageRegistryCredentials"`
	Validate             json.RawMessage   `json:"validate"`
}

type credentials struct {
	AllowInsecureRegistry bool     `json:"allowInsecureRegistry"`
	Providers             []string `json:"providers"`
	Secrets               []string `json:"secrets"`
}

type set struct {
	Count   *int       `json:"count"`
	Entries []attestor `json:"entries"`
}

type attestor struct {
	Keys               *keys             `json:"keys"`
	Certificates       *certificates     `json:"certificates"`
	Keyless            *keyless          `json:"keyless"`
	Attestor           *set              `json:"attestor"`
	Annotations        map[string]string `json:"annotations"`
	Repository         string            `json:"repository"`
	SignatureAlgorithm string            `json:"signatureAlgorithm"`
}

type keys struct {
	PublicKeys         string  `json:"publicKeys"`
	KMS                string  `json:"kms"`
	Secret             *secret `json:"secret"`
	SignatureAlgorithm string  `json:"signatureAlgorithm"`
	logs
}

type secret struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type certificates struct {
	Certificate      string `json:"cert"`
	CertificateChain string `json:"certChain"`
	logs
}

type keyless struct {
	Issuer               string            `json:"issuer"`
	IssuerRegExp         string            `json:"issuerRegExp"`
	Subject              string            `json:"subject"`
	SubjectRegExp        string            `json:"subjectRegExp"`
	Roots                string            `json:"roots"`
	AdditionalExtensions map[string]string `json:"additionalExtensions"`
	logs
}

type logs struct {
	Rekor *struct {
		URL        string `json:"url"`
		PublicKey  string `json:"pubkey"`
		IgnoreTlog bool   `json:"ignoreTlog"`
	} `json:"rekor"`
	CTLog *struct {
		IgnoreSCT    bool   `json:"ignoreSCT"`
		PublicKey    string `json:"pubkey"`
		TSACertChain string `json:"tsaCertChain"`
	} `json:"ctlog"`
}

type attestation struct {
	Name          string          `json:"name"`
	Type          string          `json:"type"`
	PredicateType string          `json:"predicateType"`
	Attestors     []set           `json:"attestors"`
	Conditions    json.RawMessage `json:"conditions"`
}
