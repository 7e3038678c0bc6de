// Package imageverification is the schema of an entry of verifyImages, as in Kyverno's ImageVerification
// (kyverno.io/v1), for the dialect and the converter.
package imageverification

// Entry is one entry of verifyImages. The pointers have a default.
type Entry struct {
	FailureAction            string            `json:"failureAction"`
	Type                     string            `json:"type"`
	Image                    string            `json:"image"`
	Key                      string            `json:"key"`
	Roots                    string            `json:"roots"`
	Subject                  string            `json:"subject"`
	Issuer                   string            `json:"issuer"`
	AdditionalExtensions     map[string]string `json:"additionalExtensions"`
	Annotations              map[string]string `json:"annotations"`
	ImageReferences          []string          `json:"imageReferences"`
	SkipImageReferences      []string          `json:"skipImageReferences"`
	Attestors                []AttestorSet     `json:"attestors"`
	Attestations             []Attestation     `json:"attestations"`
	Repository               string            `json:"repository"`
	CosignOCI11              *bool             `json:"cosignOCI11"`
	MutateDigest             *bool             `json:"mutateDigest"`
	VerifyDigest             *bool             `json:"verifyDigest"`
	Required                 *bool             `json:"required"`
	UseCache                 *bool             `json:"useCache"`
	ImageRegistryCredentials *Credentials      `json:"imageRegistryCredentials"`
	Validate                 *Validation       `json:"validate"`
}

// Credentials are the settings of registry access.
type Credentials struct {
	AllowInsecureRegistry bool     `json:"allowInsecureRegistry"`
	Providers             []string `json:"providers"`
	Secrets               []string `json:"secrets"`
}

// Validation is a condition over the predicates of all attestations.
type Validation struct {
	Message string `json:"message"`
	Deny    *struct {
		Conditions any `json:"conditions"`
	} `json:"deny"`
}

// AttestorSet is a set of attestors, of which a number must have signed.
type AttestorSet struct {
	Count   *int       `json:"count"`
	Entries []Attestor `json:"entries"`
}

// Attestor is one of keys, certificates, keyless and a nested set.
type Attestor struct {
	Keys               *Keys             `json:"keys"`
	Certificates       *Certificates     `json:"certificates"`
	Keyless            *Keyless          `json:"keyless"`
	Attestor           *AttestorSet      `json:"attestor"`
	Annotations        map[string]string `json:"annotations"`
	Repository         string            `json:"repository"`
	SignatureAlgorithm string            `json:"signatureAlgorithm"`
}

// Keys are public keys, or a reference to them.
type Keys struct {
	PublicKeys         string     `json:"publicKeys"`
	KMS                string     `json:"kms"`
	Secret             *SecretRef `json:"secret"`
	SignatureAlgorithm string     `json:"signatureAlgorithm"`
	Rekor              *Rekor     `json:"rekor"`
	CTLog              *CTLog     `json:"ctlog"`
}

// SecretRef names a Secret.
type SecretRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// Certificates are a signing certificate and its chain.
type Certificates struct {
	Certificate      string `json:"cert"`
	CertificateChain string `json:"certChain"`
	Rekor            *Rekor `json:"rekor"`
	CTLog            *CTLog `json:"ctlog"`
}

// Keyless is a certificate identity of Fulcio.
type Keyless struct {
	Issuer               string            `json:"issuer"`
	IssuerRegExp         string            `json:"issuerRegExp"`
	Subject              string            `json:"subject"`
	SubjectRegExp        string            `json:"subjectRegExp"`
	Roots                string            `json:"roots"`
	AdditionalExtensions map[string]string `json:"additionalExtensions"`
	Rekor                *Rekor            `json:"rekor"`
	CTLog                *CTLog            `json:"ctlog"`
}

// Rekor is the transparency log.
type Rekor struct {
	URL        string `json:"url"`
	PublicKey  string `json:"pubkey"`
	IgnoreTlog bool   `json:"ignoreTlog"`
}

// CTLog is the certificate transparency log, and the timestamp authority.
type CTLog struct {
	IgnoreSCT    bool   `json:"ignoreSCT"`
	PublicKey    string `json:"pubkey"`
	TSACertChain string `json:"tsaCertChain"`
}

// Attestation is a required statement.
type Attestation struct {
	Name          string        `json:"name"`
	Type          string        `json:"type"`
	PredicateType string        `json:"predicateType"`
	Attestors     []AttestorSet `json:"attestors"`
	Conditions    any           `json:"conditions"`
}
