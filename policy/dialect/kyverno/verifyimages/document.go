package verifyimages

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
