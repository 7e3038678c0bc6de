package convert

import "fmt"

// said is one policy, in the words of an ImageValidatingPolicy. What a source says
// is put into this form and nothing else; package-wide habits (which requests,
// which failure setting) are filled in by the writer.
type said struct {
	// name is made of the source's own; conversion.say makes it a DNS label that no
	// other policy has.
	name string
	// namespace makes it a NamespacedImageValidatingPolicy.
	namespace string
	// about is what a reader must know of the policy as a whole.
	about []string

	// match is which requests it speaks of; nil stands for all pods.
	match *matchConstraints
	// conditions narrow match.
	conditions []condition
	// images are those that it speaks of: any of the references.
	images       []imageReference
	attestors    []attestor
	attestations []attestation
	validations  []validation

	actions       []string // empty means Deny
	failurePolicy string   // empty means Fail
	timeout       int      // seconds; 0 leaves it out
	background    *bool
	// pin says what is asked of digests; nil stands for all three.
	pin         *pinning
	credentials *credentials
}

// matchConstraints are Kubernetes' MatchResources, as far as sources need them.
type matchConstraints struct {
	ResourceRules        []resourceRule `yaml:"resourceRules"`
	ExcludeResourceRules []resourceRule `yaml:"excludeResourceRules,omitempty"`
	NamespaceSelector    *selector      `yaml:"namespaceSelector,omitempty"`
	ObjectSelector       *selector      `yaml:"objectSelector,omitempty"`
}

type resourceRule struct {
	Groups     []string `yaml:"apiGroups"`
	Versions   []string `yaml:"apiVersions"`
	Operations []string `yaml:"operations"`
	Resources  []string `yaml:"resources"`
}

type selector struct {
	MatchLabels      map[string]string  `json:"matchLabels" yaml:"matchLabels,omitempty"`
	MatchExpressions []labelRequirement `json:"matchExpressions" yaml:"matchExpressions,omitempty"`
}

type labelRequirement struct {
	Key      string   `json:"key" yaml:"key"`
	Operator string   `json:"operator" yaml:"operator"`
	Values   []string `json:"values" yaml:"values,omitempty"`
}

type condition struct {
	Name       string `json:"name" yaml:"name"`
	Expression string `json:"expression" yaml:"expression"`
}

type imageReference struct {
	Glob       string `yaml:"glob,omitempty"`
	Expression string `yaml:"expression,omitempty"`
	comment    string
}

type pinning struct {
	Mutate   bool `yaml:"mutateDigest"`
	Verify   bool `yaml:"verifyDigest"`
	Required bool `yaml:"required"`
}

type credentials struct {
	AllowInsecureRegistry bool     `yaml:"allowInsecureRegistry,omitempty"`
	Providers             []string `yaml:"providers,omitempty"`
	Secrets               []string `yaml:"secrets,omitempty"`
}

type attestor struct {
	Name    string  `yaml:"name"`
	Cosign  *cosign `yaml:"cosign,omitempty"`
	Notary  *notary `yaml:"notary,omitempty"`
	comment string
}

type cosign struct {
	Key         *key              `yaml:"key,omitempty"`
	Keyless     *keyless          `yaml:"keyless,omitempty"`
	Certificate *certificates     `yaml:"certificate,omitempty"`
	Source      *location         `yaml:"source,omitempty"`
	CTLog       *ctlog            `yaml:"ctlog,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
	TrustedRoot *value            `yaml:"trustedRoot,omitempty"`
}

type key struct {
	Data string `yaml:"data,omitempty"`
	KMS  string `yaml:"kms,omitempty"`
	Hash string `yaml:"hashAlgorithm,omitempty"`
}

type keyless struct {
	Identities []identity        `yaml:"identities"`
	Roots      string            `yaml:"roots,omitempty"`
	Extensions map[string]string `yaml:"additionalExtensions,omitempty"`
}

type identity struct {
	Issuer        string `yaml:"issuer,omitempty"`
	IssuerRegExp  string `yaml:"issuerRegExp,omitempty"`
	Subject       string `yaml:"subject,omitempty"`
	SubjectRegExp string `yaml:"subjectRegExp,omitempty"`
}

type certificates struct {
	Certificate *value `yaml:"cert,omitempty"`
	Chain       *value `yaml:"certChain,omitempty"`
}

type location struct {
	Repository  string      `yaml:"repository,omitempty"`
	PullSecrets []secretRef `yaml:"PullSecrets,omitempty"`
	TagPrefix   string      `yaml:"tagPrefix,omitempty"`
}

type secretRef struct {
	Name string `json:"name" yaml:"name"`
}

type ctlog struct {
	URL        string `yaml:"url,omitempty"`
	RekorKey   string `yaml:"rekorPubKey,omitempty"`
	CTKey      string `yaml:"ctLogPubKey,omitempty"`
	TSAChain   string `yaml:"tsaCertChain,omitempty"`
	IgnoreTlog bool   `yaml:"insecureIgnoreTlog,omitempty"`
	IgnoreSCT  bool   `yaml:"insecureIgnoreSCT,omitempty"`
}

type notary struct {
	Certs    *value `yaml:"certs,omitempty"`
	TSACerts *value `yaml:"tsaCerts,omitempty"`
}

type value struct {
	Value string `yaml:"value"`
}

type attestation struct {
	Name     string   `yaml:"name"`
	InToto   *ofType  `yaml:"intoto,omitempty"`
	Referrer *ofType  `yaml:"referrer,omitempty"`
	_        struct{} // keyed literals alone
}

type ofType struct {
	Type string `yaml:"type"`
}

type validation struct {
	Expression string `yaml:"expression"`
	Message    string `yaml:"message,omitempty"`
	comment    string
}

// say keeps a policy under a name of its own.
func (c *conversion) say(p *said) {
	for _, one := range p.images {
		if len(one.Expression) > maxExpression {
			c.refuse("", fmt.Sprintf("the images of policy %s take an expression of %d bytes to say", p.name, len(one.Expression)), "split the source into fewer rules: each leaves out what the others take")
		}
	}
	p.name = unique(label(p.name), c.names)
	c.policies = append(c.policies, p)
}

// every is an expression about each image that the policy speaks of, whatever part
// of the object it was found in.
func every(expression string) string {
	return "images.all(kind, images[kind].all(image,\n  " + expression + "))"
}

// signed is true for an image that at least so many of the attestors have signed.
func signed(attestors []string, least int) string {
	return "verifyImageSignatures(image, " + listOf(attestors) + ") >= " + itoa(least)
}

// attested is the same of an attestation.
func attested(attestation string, attestors []string, least int) string {
	return "verifyAttestationSignatures(image, attestations." + attestation + ", " + listOf(attestors) + ") >= " + itoa(least)
}

func listOf(attestors []string) string {
	text := "["
	for i, name := range attestors {
		if i > 0 {
			text += ", "
		}
		text += "attestors." + name
	}
	return text + "]"
}

// denied is true for no image: the policy speaks of it, and nobody can sign it.
// A pod without such an image passes.
func denied() string {
	return "images.all(kind, images[kind].size() == 0)"
}

// deny is a policy that refuses the images it speaks of.
func deny(name string, images imageReference, message string, about ...string) *said {
	return &said{
		name: name, about: about, images: []imageReference{images}, pin: &pinning{},
		validations: []validation{{Expression: denied(), Message: message}},
	}
}
