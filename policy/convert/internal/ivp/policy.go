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
	ResourceRules        []ResourceRule `json:"resourceRules" yaml:"resourceRules"`
	ExcludeResourceRules []ResourceRule `json:"excludeResourceRules,omitempty" yaml:"excludeResourceRules,omitempty"`
	NamespaceSelector    *Selector      `json:"namespaceSelector,omitempty" yaml:"namespaceSelector,omitempty"`
	ObjectSelector       *Selector      `json:"objectSelector,omitempty" yaml:"objectSelector,omitempty"`
}

// ResourceRule is one of the API server's NamedRuleWithOperations.
type ResourceRule struct {
	Groups     []string `json:"apiGroups" yaml:"apiGroups"`
	Versions   []string `json:"apiVersions" yaml:"apiVersions"`
	Operations []string `json:"operations" yaml:"operations"`
	Resources  []string `json:"resources" yaml:"resources"`
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
	Glob       string `json:"glob,omitempty" yaml:"glob,omitempty"`
	Expression string `json:"expression,omitempty" yaml:"expression,omitempty"`
	// Comment is written above the entry.
	Comment string `json:"-" yaml:"-"`
}

// Pinning are the validationConfigurations.
type Pinning struct {
	Mutate   bool `json:"mutateDigest" yaml:"mutateDigest"`
	Verify   bool `json:"verifyDigest" yaml:"verifyDigest"`
	Required bool `json:"required" yaml:"required"`
}

// Credentials are the credentials for registries.
type Credentials struct {
	AllowInsecureRegistry bool     `json:"allowInsecureRegistry,omitempty" yaml:"allowInsecureRegistry,omitempty"`
	Providers             []string `json:"providers,omitempty" yaml:"providers,omitempty"`
	Secrets               []string `json:"secrets,omitempty" yaml:"secrets,omitempty"`
}

// Attestor is one possible signer.
type Attestor struct {
	Name   string  `json:"name" yaml:"name"`
	Cosign *Cosign `json:"cosign,omitempty" yaml:"cosign,omitempty"`
	Notary *Notary `json:"notary,omitempty" yaml:"notary,omitempty"`
	// Comment is written above the entry.
	Comment string `json:"-" yaml:"-"`
}

// Cosign is an attestor of Sigstore's: a key, an identity or a certificate.
type Cosign struct {
	Key         *Key              `json:"key,omitempty" yaml:"key,omitempty"`
	Keyless     *Keyless          `json:"keyless,omitempty" yaml:"keyless,omitempty"`
	Certificate *Certificates     `json:"certificate,omitempty" yaml:"certificate,omitempty"`
	Source      *Location         `json:"source,omitempty" yaml:"source,omitempty"`
	CTLog       *CTLog            `json:"ctlog,omitempty" yaml:"ctlog,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty" yaml:"annotations,omitempty"`
	TrustedRoot *Value            `json:"trustedRoot,omitempty" yaml:"trustedRoot,omitempty"`
}

// Key is a public key, in PEM or in a key management service.
type Key struct {
	Data string `json:"data,omitempty" yaml:"data,omitempty"`
	KMS  string `json:"kms,omitempty" yaml:"kms,omitempty"`
	Hash string `json:"hashAlgorithm,omitempty" yaml:"hashAlgorithm,omitempty"`
}

// Keyless is a signer with certificates of an authority like Fulcio.
type Keyless struct {
	Identities []Identity        `json:"identities" yaml:"identities"`
	Roots      string            `json:"roots,omitempty" yaml:"roots,omitempty"`
	Extensions map[string]string `json:"additionalExtensions,omitempty" yaml:"additionalExtensions,omitempty"`
}

// Identity is a certificate's issuer and subject; of each pair one is set. Expressions
// match the whole text.
type Identity struct {
	Issuer        string `json:"issuer,omitempty" yaml:"issuer,omitempty"`
	IssuerRegExp  string `json:"issuerRegExp,omitempty" yaml:"issuerRegExp,omitempty"`
	Subject       string `json:"subject,omitempty" yaml:"subject,omitempty"`
	SubjectRegExp string `json:"subjectRegExp,omitempty" yaml:"subjectRegExp,omitempty"`
}

// Certificates are a signer's own and its chain, in PEM.
type Certificates struct {
	Certificate *Value `json:"cert,omitempty" yaml:"cert,omitempty"`
	Chain       *Value `json:"certChain,omitempty" yaml:"certChain,omitempty"`
}

// Location is where else signatures lie.
type Location struct {
	Repository  string      `json:"repository,omitempty" yaml:"repository,omitempty"`
	PullSecrets []SecretRef `json:"PullSecrets,omitempty" yaml:"PullSecrets,omitempty"`
	TagPrefix   string      `json:"tagPrefix,omitempty" yaml:"tagPrefix,omitempty"`
}

// SecretRef names a Secret.
type SecretRef struct {
	Name string `json:"name" yaml:"name"`
}

// CTLog holds the requirements on logs and timestamps.
type CTLog struct {
	URL        string `json:"url,omitempty" yaml:"url,omitempty"`
	RekorKey   string `json:"rekorPubKey,omitempty" yaml:"rekorPubKey,omitempty"`
	CTKey      string `json:"ctLogPubKey,omitempty" yaml:"ctLogPubKey,omitempty"`
	TSAChain   string `json:"tsaCertChain,omitempty" yaml:"tsaCertChain,omitempty"`
	IgnoreTlog bool   `json:"insecureIgnoreTlog,omitempty" yaml:"insecureIgnoreTlog,omitempty"`
	IgnoreSCT  bool   `json:"insecureIgnoreSCT,omitempty" yaml:"insecureIgnoreSCT,omitempty"`
}

// Notary is an attestor of notation's: authorities of signers and of timestamps, in PEM.
type Notary struct {
	Certs    *Value `json:"certs,omitempty" yaml:"certs,omitempty"`
	TSACerts *Value `json:"tsaCerts,omitempty" yaml:"tsaCerts,omitempty"`
}

// Value is a text in the policy itself.
type Value struct {
	Value string `json:"value" yaml:"value"`
}

// Attestation is a kind of statement: an in-toto predicate, or an artifact that refers
// to the image.
type Attestation struct {
	Name     string   `json:"name" yaml:"name"`
	InToto   *OfType  `json:"intoto,omitempty" yaml:"intoto,omitempty"`
	Referrer *OfType  `json:"referrer,omitempty" yaml:"referrer,omitempty"`
	_        struct{} // keyed literals alone
}

// OfType is the type of a statement.
type OfType struct {
	Type string `json:"type" yaml:"type"`
}

// Validation is a condition in CEL, and its message.
type Validation struct {
	Expression string `json:"expression" yaml:"expression"`
	Message    string `json:"message,omitempty" yaml:"message,omitempty"`
	// Comment is written above the entry.
	Comment string `json:"-" yaml:"-"`
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
