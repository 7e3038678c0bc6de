package convert

import "encoding/json"

// kyvernoDocument is a ClusterPolicy or Policy of kyverno.io, as far as verifyImages
// goes. What cannot be carried stays raw.
type kyvernoDocument struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       kyvernoSpec     `json:"spec"`
	Status     json.RawMessage `json:"status"`
}

type kyvernoSpec struct {
	Rules                            []kyvernoRule   `json:"rules"`
	ApplyRules                       string          `json:"applyRules"`
	FailurePolicy                    string          `json:"failurePolicy"`
	ValidationFailureAction          string          `json:"validationFailureAction"`
	ValidationFailureActionOverrides json.RawMessage `json:"validationFailureActionOverrides"`
	EmitWarning                      bool            `json:"emitWarning"`
	Admission                        *bool           `json:"admission"`
	Background                       *bool           `json:"background"`
	WebhookTimeoutSeconds            int             `json:"webhookTimeoutSeconds"`
	WebhookConfiguration             *kyvernoWebhook `json:"webhookConfiguration"`
}

type kyvernoWebhook struct {
	FailurePolicy   string      `json:"failurePolicy"`
	TimeoutSeconds  int         `json:"timeoutSeconds"`
	MatchConditions []condition `json:"matchConditions"`
}

type kyvernoRule struct {
	Name                   string            `json:"name"`
	Context                json.RawMessage   `json:"context"`
	Match                  kyvernoMatch      `json:"match"`
	Exclude                *kyvernoMatch     `json:"exclude"`
	ImageExtractors        json.RawMessage   `json:"imageExtractors"`
	Preconditions          json.RawMessage   `json:"preconditions"`
	CELPreconditions       []condition       `json:"celPreconditions"`
	Mutate                 json.RawMessage   `json:"mutate"`
	Validate               json.RawMessage   `json:"validate"`
	Generate               json.RawMessage   `json:"generate"`
	VerifyImages           []json.RawMessage `json:"verifyImages"`
	SkipBackgroundRequests *bool             `json:"skipBackgroundRequests"`
	ReportProperties       map[string]string `json:"reportProperties"`
}

type kyvernoMatch struct {
	Any []kyvernoFilter `json:"any"`
	All []kyvernoFilter `json:"all"`
	kyvernoFilter
}

type kyvernoFilter struct {
	Resources    kyvernoResources `json:"resources"`
	Subjects     json.RawMessage  `json:"subjects"`
	Roles        []string         `json:"roles"`
	ClusterRoles []string         `json:"clusterRoles"`
}

type kyvernoResources struct {
	Kinds             []string          `json:"kinds"`
	Name              string            `json:"name"`
	Names             []string          `json:"names"`
	Namespaces        []string          `json:"namespaces"`
	Annotations       map[string]string `json:"annotations"`
	Selector          *selector         `json:"selector"`
	NamespaceSelector *selector         `json:"namespaceSelector"`
	Operations        []string          `json:"operations"`
}

// kyvernoEntry is one entry of verifyImages. The pointers have a default.
type kyvernoEntry struct {
	FailureAction        string               `json:"failureAction"`
	Type                 string               `json:"type"`
	Image                string               `json:"image"`
	Key                  string               `json:"key"`
	Roots                string               `json:"roots"`
	Subject              string               `json:"subject"`
	Issuer               string               `json:"issuer"`
	AdditionalExtensions map[string]string    `json:"additionalExtensions"`
	Annotations          map[string]string    `json:"annotations"`
	ImageReferences      []string             `json:"imageReferences"`
	SkipImageReferences  []string             `json:"skipImageReferences"`
	Attestors            []kyvernoSet         `json:"attestors"`
	Attestations         []kyvernoAttestation `json:"attestations"`
	Repository           string               `json:"repository"`
	CosignOCI11          *bool                `json:"cosignOCI11"`
	MutateDigest         *bool                `json:"mutateDigest"`
	VerifyDigest         *bool                `json:"verifyDigest"`
	Required             *bool                `json:"required"`
	UseCache             *bool                `json:"useCache"`
	Credentials          *kyvernoCredentials  `json:"imageRegistryCredentials"`
	Validate             json.RawMessage      `json:"validate"`
}

type kyvernoCredentials struct {
	AllowInsecureRegistry bool     `json:"allowInsecureRegistry"`
	Providers             []string `json:"providers"`
	Secrets               []string `json:"secrets"`
}

type kyvernoSet struct {
	Count   *int              `json:"count"`
	Entries []kyvernoAttestor `json:"entries"`
}

type kyvernoAttestor struct {
	Keys               *kyvernoKeys         `json:"keys"`
	Certificates       *kyvernoCertificates `json:"certificates"`
	Keyless            *kyvernoKeyless      `json:"keyless"`
	Attestor           *kyvernoSet          `json:"attestor"`
	Annotations        map[string]string    `json:"annotations"`
	Repository         string               `json:"repository"`
	SignatureAlgorithm string               `json:"signatureAlgorithm"`
}

type kyvernoKeys struct {
	PublicKeys         string         `json:"publicKeys"`
	KMS                string         `json:"kms"`
	Secret             *kyvernoSecret `json:"secret"`
	SignatureAlgorithm string         `json:"signatureAlgorithm"`
	kyvernoLogs
}

type kyvernoSecret struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type kyvernoCertificates struct {
	Certificate      string `json:"cert"`
	CertificateChain string `json:"certChain"`
	kyvernoLogs
}

type kyvernoKeyless struct {
	Issuer               string            `json:"issuer"`
	IssuerRegExp         string            `json:"issuerRegExp"`
	Subject              string            `json:"subject"`
	SubjectRegExp        string            `json:"subjectRegExp"`
	Roots                string            `json:"roots"`
	AdditionalExtensions map[string]string `json:"additionalExtensions"`
	kyvernoLogs
}

type kyvernoLogs struct {
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

type kyvernoAttestation struct {
	Name          string          `json:"name"`
	Type          string          `json:"type"`
	PredicateType string          `json:"predicateType"`
	Attestors     []kyvernoSet    `json:"attestors"`
	Conditions    json.RawMessage `json:"conditions"`
}
