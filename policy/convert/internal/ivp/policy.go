package ivp

import (
	"strconv"
	"strings"
)

// Policy is one policy, with the fields of an ImageValidatingPolicy that a source can set.
// Write adds common defaults (which requests, which failure setting).
type Policy struct {
	// Name is derived from the source's name; the collection of policies turns it into a
	// unique DNS label.
	Name string
	// Namespace makes it a NamespacedImageValidatingPolicy.
	Namespace string
	// About holds the comments about the policy as a whole.
	About []string

	// Match selects the requests; nil selects all pods.
	Match *MatchConstraints
	// Conditions narrow match.
	Conditions []Condition
	// Images are the matched images: any of the references.
	Images       []ImageReference
	Attestors    []Attestor
	Attestations []Attestation
	Validations  []Validation

	Actions       []string // empty means Deny
	FailurePolicy string   // empty means Fail
	Timeout       int      // seconds; 0 leaves it out
	Background    *bool
	// Pin holds the requirements on digests; nil means all three.
	Pin         *Pinning
	Credentials *Credentials
}

// MatchConstraints are Kubernetes' MatchResources, as far as sources need them.
type MatchConstraints struct {
	ResourceRules        []ResourceRule `yaml:"resourceRules"`
	ExcludeResourceRules []ResourceRule `yaml:"excludeResourceRules,omitempty"`
	NamespaceSelector    *Selector      `yaml:"namespaceSelector,omitempty"`
	ObjectSelector       *Selector      `yaml:"objectSelector,omitempty"`
}

// ResourceRule is one of the API server's NamedRuleWithOperations.
type ResourceRule struct {
	Groups     []string `yaml:"apiGroups"`
	Versions   []string `yaml:"apiVersions"`
	Operations []string `yaml:"operations"`
	Resources  []string `yaml:"resources"`
}

// Selector is Kubernetes' LabelSelector.
type Selector struct {
	MatchLabels      map[string]string  `json:"matchLabels" yaml:"matchLabels,omitempty"`
	MatchExpressions []LabelRequirement `json:"matchExpressions" yaml:"matchExpressions,omitempty"`
}

// LabelRequirement is one expression of a selector.
type LabelRequirement struct {
	Key      string   `json:"key" yaml:"key"`
	Operator string   `json:"operator" yaml:"operator"`
	Values   []string `json:"values" yaml:"values,omitempty"`
}

// Condition is one of matchConditions, in CEL.
type Condition struct {
	Name       string `json:"name" yaml:"name"`
	Expression string `json:"expression" yaml:"expression"`
}

// ImageReference selects images by a pattern or by an expression, in CEL over ref.
type ImageReference struct {
	Glob       string `yaml:"glob,omitempty"`
	Expression string `yaml:"expression,omitempty"`
	// Comment is written above the entry.
	Comment string `yaml:"-"`
}

// Pinning are the validationConfigurations.
type Pinning struct {
	Mutate   bool `yaml:"mutateDigest"`
	Verify   bool `yaml:"verifyDigest"`
	Required bool `yaml:"required"`
}

// Credentials are the credentials for registries.
type Credentials struct {
	AllowInsecureRegistry bool     `yaml:"allowInsecureRegistry,omitempty"`
	Providers             []string `yaml:"providers,omitempty"`
	Secrets               []string `yaml:"secrets,omitempty"`
}

// Attestor is one possible signer.
type Attestor struct {
	Name   string  `yaml:"name"`
	Cosign *Cosign `yaml:"cosign,omitempty"`
	Notary *Notary `yaml:"notary,omitempty"`
	// Comment is written above the entry.
	Comment string `yaml:"-"`
}

// Cosign is an attestor of Sigstore's: a key, an identity or a certificate.
type Cosign struct {
	Key         *Key              `yaml:"key,omitempty"`
	Keyless     *Keyless          `yaml:"keyless,omitempty"`
	Certificate *Certificates     `yaml:"certificate,omitempty"`
	Source      *Location         `yaml:"source,omitempty"`
	CTLog       *CTLog            `yaml:"ctlog,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
	TrustedRoot *Value            `yaml:"trustedRoot,omitempty"`
}

// Key is a public key, in PEM or in a key management service.
type Key struct {
	Data string `yaml:"data,omitempty"`
	KMS  string `yaml:"kms,omitempty"`
	Hash string `yaml:"hashAlgorithm,omitempty"`
}

// Keyless is a signer with certificates of an authority like Fulcio.
type Keyless struct {
	Identities []Identity        `yaml:"identities"`
	Roots      string            `yaml:"roots,omitempty"`
	Extensions map[string]string `yaml:"additionalExtensions,omitempty"`
}

// Identity is a certificate's issuer and subject; of each pair one is set. Expressions
// match the whole text.
type Identity struct {
	Issuer        string `yaml:"issuer,omitempty"`
	IssuerRegExp  string `yaml:"issuerRegExp,omitempty"`
	Subject       string `yaml:"subject,omitempty"`
	SubjectRegExp string `yaml:"subjectRegExp,omitempty"`
}

// Certificates are a signer's own and its chain, in PEM.
type Certificates struct {
	Certificate *Value `yaml:"cert,omitempty"`
	Chain       *Value `yaml:"certChain,omitempty"`
}

// Location is where else signatures lie.
type Location struct {
	Repository  string      `yaml:"repository,omitempty"`
	PullSecrets []SecretRef `yaml:"PullSecrets,omitempty"`
	TagPrefix   string      `yaml:"tagPrefix,omitempty"`
}

// SecretRef names a Secret.
type SecretRef struct {
	Name string `json:"name" yaml:"name"`
}

// CTLog holds the requirements on logs and timestamps.
type CTLog struct {
	URL        string `yaml:"url,omitempty"`
	RekorKey   string `yaml:"rekorPubKey,omitempty"`
	CTKey      string `yaml:"ctLogPubKey,omitempty"`
	TSAChain   string `yaml:"tsaCertChain,omitempty"`
	IgnoreTlog bool   `yaml:"insecureIgnoreTlog,omitempty"`
	IgnoreSCT  bool   `yaml:"insecureIgnoreSCT,omitempty"`
}

// Notary is an attestor of notation's: authorities of signers and of timestamps, in PEM.
type Notary struct {
	Certs    *Value `yaml:"certs,omitempty"`
	TSACerts *Value `yaml:"tsaCerts,omitempty"`
}

// Value is a text in the policy itself.
type Value struct {
	Value string `yaml:"value"`
}

// Attestation is a kind of statement: an in-toto predicate, or an artifact that refers
// to the image.
type Attestation struct {
	Name     string   `yaml:"name"`
	InToto   *OfType  `yaml:"intoto,omitempty"`
	Referrer *OfType  `yaml:"referrer,omitempty"`
	_        struct{} // keyed literals alone
}

// OfType is the type of a statement.
type OfType struct {
	Type string `yaml:"type"`
}

// Validation is a condition in CEL, and its message.
type Validation struct {
	Expression string `yaml:"expression"`
	Message    string `yaml:"message,omitempty"`
	// Comment is written above the entry.
	Comment string `yaml:"-"`
}

// Every is an expression about each matched image, whatever part of the object it was
// found in.
func Every(expression string) string {
	return "images.all(kind, images[kind].all(image,\n  " + expression + "))"
}

// Signed is true for an image that at least so many of the attestors have signed.
func Signed(attestors []string, least int) string {
	return "verifyImageSignatures(image, " + ListOf(attestors) + ") >= " + strconv.Itoa(least)
}

// Attested is the same of an attestation.
func Attested(attestation string, attestors []string, least int) string {
	return "verifyAttestationSignatures(image, attestations." + attestation + ", " + ListOf(attestors) + ") >= " + strconv.Itoa(least)
}

// ListOf is the list of attestors in CEL.
func ListOf(attestors []string) string {
	text := "["
	for i, name := range attestors {
		if i > 0 {
			text += ", "
		}
		text += "attestors." + name
	}
	return text + "]"
}

// Denied is true for no image: the policy matches it, and no signature can meet it. A pod
// without such an image passes.
func Denied() string {
	return "images.all(kind, images[kind].size() == 0)"
}

// Deny is a policy that denies the images it matches.
func Deny(name string, images ImageReference, message string, about ...string) *Policy {
	return &Policy{
		Name: name, About: about, Images: []ImageReference{images}, Pin: &Pinning{},
		Validations: []Validation{{Expression: Denied(), Message: message}},
	}
}

// TrustStore is a notary attestor's certificates.
func TrustStore(certs, tsa []string) *Notary {
	n := &Notary{}
	if len(certs) > 0 {
		n.Certs = &Value{Value: strings.Join(certs, "")}
	}
	if len(tsa) > 0 {
		n.TSACerts = &Value{Value: strings.Join(tsa, "")}
	}
	return n
}
