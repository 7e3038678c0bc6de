package kyverno

import "encoding/json"

// The documents as they are written. Fields that are JSON of a rule language
// stay `any`; everything else has its type, so that decoding finds mistakes.

type document struct {
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
}

type spec struct {
	Rules                            []json.RawMessage     `json:"rules"`
	ApplyRules                       string                `json:"applyRules"`
	FailurePolicy                    string                `json:"failurePolicy"`
	ValidationFailureAction          string                `json:"validationFailureAction"`
	ValidationFailureActionOverrides []actionOverride      `json:"validationFailureActionOverrides"`
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
	FailurePolicy   string `json:"failurePolicy"`
	TimeoutSeconds  *int32 `json:"timeoutSeconds"`
	MatchConditions []any  `json:"matchConditions"`
}

type actionOverride struct {
	Action            string         `json:"action"`
	Namespaces        []string       `json:"namespaces"`
	NamespaceSelector *labelSelector `json:"namespaceSelector"`
}

type rule struct {
	Name                   string                      `json:"name"`
	Context                []contextEntry              `json:"context"`
	Match                  matchBlock                  `json:"match"`
	Exclude                *matchBlock                 `json:"exclude"`
	ImageExtractors        map[string][]imageExtractor `json:"imageExtractors"`
	Preconditions          any                         `json:"preconditions"`
	CELPreconditions       []any                       `json:"celPreconditions"`
	Mutate                 any                         `json:"mutate"`
	Validate               any                         `json:"validate"`
	Generate               any                         `json:"generate"`
	VerifyImages           []any                       `json:"verifyImages"`
	SkipBackgroundRequests *bool                       `json:"skipBackgroundRequests"`
	ReportProperties       map[string]string           `json:"reportProperties"`
}

type matchBlock struct {
	Any []resourceFilter `json:"any"`
	All []resourceFilter `json:"all"`
	resourceFilter
}

type resourceFilter struct {
	Resources    resourceDescription `json:"resources"`
	Subjects     []subject           `json:"subjects"`
	Roles        []string            `json:"roles"`
	ClusterRoles []string            `json:"clusterRoles"`
}

type resourceDescription struct {
	Kinds             []string          `json:"kinds"`
	Name              string            `json:"name"`
	Names             []string          `json:"names"`
	Namespaces        []string          `json:"namespaces"`
	Annotations       map[string]string `json:"annotations"`
	Selector          *labelSelector    `json:"selector"`
	NamespaceSelector *labelSelector    `json:"namespaceSelector"`
	Operations        []string          `json:"operations"`
}

type subject struct {
	Kind      string `json:"kind"`
	APIGroup  string `json:"apiGroup"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type labelSelector struct {
	MatchLabels      map[string]string  `json:"matchLabels"`
	MatchExpressions []labelRequirement `json:"matchExpressions"`
}

type labelRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

type contextEntry struct {
	Name            string          `json:"name"`
	ConfigMap       *configMapEntry `json:"configMap"`
	Variable        *variableEntry  `json:"variable"`
	APICall         any             `json:"apiCall"`
	ImageRegistry   any             `json:"imageRegistry"`
	GlobalReference any             `json:"globalReference"`
}

type configMapEntry struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type variableEntry struct {
	Value    any    `json:"value"`
	JMESPath string `json:"jmesPath"`
	Default  any    `json:"default"`
}

type imageExtractor struct {
	Path     string `json:"path"`
	Value    string `json:"value"`
	Name     string `json:"name"`
	Key      string `json:"key"`
	JMESPath string `json:"jmesPath"`
}

// verification is one entry of verifyImages. The pointers have a default.
type verification struct {
	FailureAction            string               `json:"failureAction"`
	Type                     string               `json:"type"`
	Image                    string               `json:"image"`
	Key                      string               `json:"key"`
	Roots                    string               `json:"roots"`
	Subject                  string               `json:"subject"`
	Issuer                   string               `json:"issuer"`
	AdditionalExtensions     map[string]string    `json:"additionalExtensions"`
	Annotations              map[string]string    `json:"annotations"`
	ImageReferences          []string             `json:"imageReferences"`
	SkipImageReferences      []string             `json:"skipImageReferences"`
	Attestors                []attestorSet        `json:"attestors"`
	Attestations             []attestation        `json:"attestations"`
	Repository               string               `json:"repository"`
	CosignOCI11              *bool                `json:"cosignOCI11"`
	MutateDigest             *bool                `json:"mutateDigest"`
	VerifyDigest             *bool                `json:"verifyDigest"`
	Required                 *bool                `json:"required"`
	UseCache                 *bool                `json:"useCache"`
	ImageRegistryCredentials *registryCredentials `json:"imageRegistryCredentials"`
	Validate                 *validation          `json:"validate"`
}

type registryCredentials struct {
	AllowInsecureRegistry bool     `json:"allowInsecureRegistry"`
	Providers             []string `json:"providers"`
	Secrets               []string `json:"secrets"`
}

type validation struct {
	Message string `json:"message"`
	Deny    *struct {
		Conditions any `json:"conditions"`
	} `json:"deny"`
}

type attestorSet struct {
	Count   *int       `json:"count"`
	Entries []attestor `json:"entries"`
}

type attestor struct {
	Keys               *staticKey        `json:"keys"`
	Certificates       *certificates     `json:"certificates"`
	Keyless            *keyless          `json:"keyless"`
	Attestor           *attestorSet      `json:"attestor"`
	Annotations        map[string]string `json:"annotations"`
	Repository         string            `json:"repository"`
	SignatureAlgorithm string            `json:"signatureAlgorithm"`
}

type staticKey struct {
	PublicKeys         string     `json:"publicKeys"`
	KMS                string     `json:"kms"`
	Secret             *secretRef `json:"secret"`
	SignatureAlgorithm string     `json:"signatureAlgorithm"`
	Rekor              *rekor     `json:"rekor"`
	CTLog              *ctlog     `json:"ctlog"`
}

type secretRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type certificates struct {
	Certificate      string `json:"cert"`
	CertificateChain string `json:"certChain"`
	Rekor            *rekor `json:"rekor"`
	CTLog            *ctlog `json:"ctlog"`
}

type keyless struct {
	Issuer               string            `json:"issuer"`
	IssuerRegExp         string            `json:"issuerRegExp"`
	Subject              string            `json:"subject"`
	SubjectRegExp        string            `json:"subjectRegExp"`
	Roots                string            `json:"roots"`
	AdditionalExtensions map[string]string `json:"additionalExtensions"`
	Rekor                *rekor            `json:"rekor"`
	CTLog                *ctlog            `json:"ctlog"`
}

type rekor struct {
	URL        string `json:"url"`
	PublicKey  string `json:"pubkey"`
	IgnoreTlog bool   `json:"ignoreTlog"`
}

type ctlog struct {
	IgnoreSCT    bool   `json:"ignoreSCT"`
	PublicKey    string `json:"pubkey"`
	TSACertChain string `json:"tsaCertChain"`
}

type attestation struct {
	Name          string        `json:"name"`
	Type          string        `json:"type"`
	PredicateType string        `json:"predicateType"`
	Attestors     []attestorSet `json:"attestors"`
	Conditions    any           `json:"conditions"`
}
