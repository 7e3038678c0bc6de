// Package clusterimagepolicy is the schema of ClusterImagePolicy (policy.sigstore.dev/v1beta1), for the
// dialect and the converter. Every field has its type, so that decoding finds mistakes.
package clusterimagepolicy

import "encoding/json"

// Document is a ClusterImagePolicy.
type Document struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       Spec            `json:"spec"`
	Status     json.RawMessage `json:"status,omitempty"`
}

// Spec is its specification.
type Spec struct {
	Images      []ImagePattern  `json:"images"`
	Authorities []Authority     `json:"authorities"`
	Policy      *Policy         `json:"policy"`
	Mode        string          `json:"mode"`
	Match       []MatchResource `json:"match"`
}

// ImagePattern selects images.
type ImagePattern struct {
	Glob string `json:"glob"`
}

// Authority is one of key, keyless and static, with its evidence.
type Authority struct {
	Name             string        `json:"name"`
	Key              *Key          `json:"key"`
	Keyless          *Keyless      `json:"keyless"`
	Static           *Static       `json:"static"`
	Source           []Source      `json:"source"`
	CTLog            *CTLog        `json:"ctlog"`
	Attestations     []Attestation `json:"attestations"`
	RFC3161Timestamp *Timestamp    `json:"rfc3161timestamp"`
	SignatureFormat  string        `json:"signatureFormat"`
}

// Key is a public key, or a reference to one.
type Key struct {
	SecretRef     *SecretRef `json:"secretRef"`
	Data          string     `json:"data"`
	KMS           string     `json:"kms"`
	HashAlgorithm string     `json:"hashAlgorithm"`
}

// SecretRef names a Secret of policy-controller's namespace.
type SecretRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// String names the Secret.
func (r SecretRef) String() string { return "Secret " + r.Namespace + "/" + r.Name }

// Keyless are certificate identities of Fulcio.
type Keyless struct {
	URL               string     `json:"url"`
	Identities        []Identity `json:"identities"`
	CACert            *Key       `json:"ca-cert"`
	TrustRootRef      string     `json:"trustRootRef"`
	InsecureIgnoreSCT bool       `json:"insecureIgnoreSCT"`
}

// Identity is a certificate identity.
type Identity struct {
	Issuer        string `json:"issuer"`
	IssuerRegExp  string `json:"issuerRegExp"`
	Subject       string `json:"subject"`
	SubjectRegExp string `json:"subjectRegExp"`
}

// Static is a constant result.
type Static struct {
	Action  string `json:"action"`
	Message string `json:"message"`
}

// Source is an evidence repository.
type Source struct {
	OCI                  string       `json:"oci"`
	SignaturePullSecrets []PullSecret `json:"signaturePullSecrets"`
	TagPrefix            string       `json:"tagPrefix"`
}

// PullSecret names a pull secret.
type PullSecret struct {
	Name string `json:"name"`
}

// CTLog is the transparency log.
type CTLog struct {
	URL          string `json:"url"`
	TrustRootRef string `json:"trustRootRef"`
}

// Timestamp is the timestamp authority.
type Timestamp struct {
	TrustRootRef string `json:"trustRootRef"`
}

// Attestation is a required statement.
type Attestation struct {
	Name          string  `json:"name"`
	PredicateType string  `json:"predicateType"`
	Policy        *Policy `json:"policy"`
}

// Policy is a policy in CUE or Rego. The last four are fields of the one
// over all authorities alone.
type Policy struct {
	Type              string        `json:"type"`
	Data              string        `json:"data"`
	URL               string        `json:"url"` // of earlier versions; refused
	Remote            *RemotePolicy `json:"remote"`
	ConfigMapRef      *ConfigMapRef `json:"configMapRef"`
	FetchConfigFile   *bool         `json:"fetchConfigFile"`
	IncludeSpec       *bool         `json:"includeSpec"`
	IncludeObjectMeta *bool         `json:"includeObjectMeta"`
	IncludeTypeMeta   *bool         `json:"includeTypeMeta"`
}

// RemotePolicy is a policy text that is fetched.
type RemotePolicy struct {
	URL       string `json:"url"`
	Sha256sum string `json:"sha256sum"`
}

// ConfigMapRef names a key of a ConfigMap.
type ConfigMapRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
}

// MatchResource selects resources.
type MatchResource struct {
	Group    string         `json:"group"`
	Version  string         `json:"version"`
	Resource string         `json:"resource"`
	Selector *LabelSelector `json:"selector"`
}

// LabelSelector selects objects by labels.
type LabelSelector struct {
	MatchLabels      map[string]string  `json:"matchLabels"`
	MatchExpressions []LabelRequirement `json:"matchExpressions"`
}

// LabelRequirement is one expression of a selector.
type LabelRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}
