package sigstore

import "encoding/json"

// The documents as they are written. Everything has its type, so that decoding
// finds mistakes.

type document struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       spec            `json:"spec"`
	Status     json.RawMessage `json:"status,omitempty"`
}

type spec struct {
	Images      []imagePattern  `json:"images"`
	Authorities []authority     `json:"authorities"`
	Policy      *statePolicy    `json:"policy"`
	Mode        string          `json:"mode"`
	Match       []matchResource `json:"match"`
}

type imagePattern struct {
	Glob string `json:"glob"`
}

type authority struct {
	Name             string        `json:"name"`
	Key              *keyRef       `json:"key"`
	Keyless          *keyless      `json:"keyless"`
	Static           *static       `json:"static"`
	Source           []source      `json:"source"`
	CTLog            *ctlog        `json:"ctlog"`
	Attestations     []attestation `json:"attestations"`
	RFC3161Timestamp *timestamp    `json:"rfc3161timestamp"`
	SignatureFormat  string        `json:"signatureFormat"`
}

type keyRef struct {
	SecretRef     *secretRef `json:"secretRef"`
	Data          string     `json:"data"`
	KMS           string     `json:"kms"`
	HashAlgorithm string     `json:"hashAlgorithm"`
}

type secretRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type keyless struct {
	URL               string     `json:"url"`
	Identities        []identity `json:"identities"`
	CACert            *keyRef    `json:"ca-cert"`
	TrustRootRef      string     `json:"trustRootRef"`
	InsecureIgnoreSCT bool       `json:"insecureIgnoreSCT"`
}

type identity struct {
	Issuer        string `json:"issuer"`
	IssuerRegExp  string `json:"issuerRegExp"`
	Subject       string `json:"subject"`
	SubjectRegExp string `json:"subjectRegExp"`
}

type static struct {
	Action  string `json:"action"`
	Message string `json:"message"`
}

type source struct {
	OCI                  string       `json:"oci"`
	SignaturePullSecrets []pullSecret `json:"signaturePullSecrets"`
	TagPrefix            string       `json:"tagPrefix"`
}

type pullSecret struct {
	Name string `json:"name"`
}

type ctlog struct {
	URL          string `json:"url"`
	TrustRootRef string `json:"trustRootRef"`
}

type timestamp struct {
	TrustRootRef string `json:"trustRootRef"`
}

type attestation struct {
	Name          string       `json:"name"`
	PredicateType string       `json:"predicateType"`
	Policy        *statePolicy `json:"policy"`
}

// statePolicy is a policy in CUE or Rego. The last four are fields of the one
// over all authorities alone.
type statePolicy struct {
	Type              string        `json:"type"`
	Data              string        `json:"data"`
	URL               string        `json:"url"` // of earlier versions; refused
	Remote            *remotePolicy `json:"remote"`
	ConfigMapRef      *configMapRef `json:"configMapRef"`
	FetchConfigFile   *bool         `json:"fetchConfigFile"`
	IncludeSpec       *bool         `json:"includeSpec"`
	IncludeObjectMeta *bool         `json:"includeObjectMeta"`
	IncludeTypeMeta   *bool         `json:"includeTypeMeta"`
}

type remotePolicy struct {
	URL       string `json:"url"`
	Sha256sum string `json:"sha256sum"`
}

type configMapRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
}

type matchResource struct {
	Group    string         `json:"group"`
	Version  string         `json:"version"`
	Resource string         `json:"resource"`
	Selector *labelSelector `json:"selector"`
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
