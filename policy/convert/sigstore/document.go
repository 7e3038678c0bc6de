package sigstore

import (
	"encoding/json"

	"github.com/quaymaster/quaymaster/policy/convert/internal/said"
)

// document is a ClusterImagePolicy of policy-controller. Fields that cannot be converted
// stay raw.
type document struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       spec            `json:"spec"`
	Status     json.RawMessage `json:"status"`
}

type spec struct {
	Images []struct {
		Glob string `json:"glob"`
	} `json:"images"`
	Authorities []authority     `json:"authorities"`
	Policy      json.RawMessage `json:"policy"`
	Mode        string          `json:"mode"`
	Match       []match         `json:"match"`
}

type match struct {
	Group    string         `json:"group"`
	Version  string         `json:"version"`
	Resource string         `json:"resource"`
	Selector *said.Selector `json:"selector"`
}

type authority struct {
	Name         string          `json:"name"`
	Key          *key            `json:"key"`
	Keyless      *keyless        `json:"keyless"`
	Static       *static         `json:"static"`
	Source       []location      `json:"source"`
	CTLog        *log            `json:"ctlog"`
	Timestamp    json.RawMessage `json:"rfc3161timestamp"`
	Format       string          `json:"signatureFormat"`
	Attestations []attestation   `json:"attestations"`
}

type key struct {
	Data          string           `json:"data"`
	KMS           string           `json:"kms"`
	SecretRef     *secretReference `json:"secretRef"`
	HashAlgorithm string           `json:"hashAlgorithm"`
}

// secretReference names a Secret in policy-controller's namespace.
type secretReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type keyless struct {
	URL          string     `json:"url"`
	CACert       *key       `json:"ca-cert"`
	Identities   []identity `json:"identities"`
	TrustRootRef string     `json:"trustRootRef"`
	IgnoreSCT    bool       `json:"insecureIgnoreSCT"`
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

type location struct {
	OCI         string           `json:"oci"`
	PullSecrets []said.SecretRef `json:"signaturePullSecrets"`
	TagPrefix   string           `json:"tagPrefix"`
}

type log struct {
	URL          string `json:"url"`
	TrustRootRef string `json:"trustRootRef"`
}

type attestation struct {
	Name          string          `json:"name"`
	PredicateType string          `json:"predicateType"`
	Policy        json.RawMessage `json:"policy"`
}
