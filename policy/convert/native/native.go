package native

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/workload"
)

// The versions of Kubernetes that matter: the oldest with ValidatingAdmissionPolicy v1, those with
// MutatingAdmissionPolicy v1beta1 and v1, the first that reads files, and the newest that is known here.
const (
	Oldest    = "1.30"
	betaOfMAP = "1.34"
	firstMAP  = "1.36"
	FirstFile = "1.36"
	Newest    = "1.37"
)

// StaticSuffix ends the names of policies in files: the API server refuses others there, and these in its
// API.
const StaticSuffix = ".static.k8s.io"

// namespaceLabel is on every Namespace, with its name.
const namespaceLabel = "kubernetes.io/metadata.name"

// Options say for which API servers the policies are.
type Options struct {
	// Kubernetes is the version of the oldest API server that is to evaluate them, such as 1.34:
	// Oldest to Newest; empty means Oldest, or FirstFile for Static.
	Kubernetes string
	// Exempt are names of namespaces in which the policies have no effect.
	Exempt []string
	// Static: the policies are for files that an API server loads when it starts.
	Static bool
}

// Policy is a converted policy and its binding.
type Policy struct {
	// Name is the name of both.
	Name string
	// Validating or Mutating is set.
	Validating *Validating
	Mutating   *Mutating
	// Notes say where the meaning is subtle.
	Notes []string
}

// Validating is a ValidatingAdmissionPolicy with its binding.
type Validating struct {
	Policy  admission.ValidatingAdmissionPolicy
	Binding admission.ValidatingAdmissionPolicyBinding
}

// Mutating is a MutatingAdmissionPolicy with its binding.
type Mutating struct {
	Policy  admission.MutatingAdmissionPolicy
	Binding admission.MutatingAdmissionPolicyBinding
}

// Problem is a part of a policy that an API server cannot evaluate.
type Problem = source.Problem

// converter reads documents.
type converter struct {
	*source.Conversion
	options    Options
	version    *version.Version
	language   *language
	validating *validating.Compiler
	mutating   *mutating.Compiler
	kyverno    *kyverno.Compiler
	policies   []Policy
	// origins are the documents of the names.
	origins map[string]string
}

// Convert converts policies in their order. The problems are all parts that cannot be converted, with
// the source of the policy in the path; the policies are then those of the documents without any. An
// error is about the options.
func Convert(objects []workload.Object, options Options) ([]Policy, []Problem, error) {
	documents, err := source.Documents(objects)
	if err != nil {
		return nil, nil, err
	}
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		return nil, nil, err
	}
	rules, err := kyverno.New(kyverno.Options{Engine: engine})
	if err != nil {
		return nil, nil, err
	}
	c := &converter{
		kyverno: rules, Conversion: source.New(source.Options{}), options: options, origins: map[string]string{},
		validating: validating.New(kyvernocel.Options{}), mutating: mutating.New(kyvernocel.Options{}),
	}
	if err := c.prepare(); err != nil {
		return nil, nil, err
	}
	for _, d := range documents {
		c.document(d)
	}
	return c.policies, c.Problems, nil
}

// prepare checks the options.
func (c *converter) prepare() error {
	text := c.options.kubernetes()
	parsed, err := version.ParseMajorMinor(text)
	if err != nil {
		return fmt.Errorf("%q is no version of Kubernetes: want %s to %s", text, Oldest, Newest)
	}
	c.version = parsed
	switch {
	case !c.has(Oldest) || parsed.GreaterThan(version.MustParseGeneric(Newest)):
		return fmt.Errorf("the version %s of Kubernetes is not among those that are known here: want %s to %s", text, Oldest, Newest)
	case c.options.Static && !c.has(FirstFile):
		return fmt.Errorf("an API server of Kubernetes %s reads no policies from files: want %s or later", text, FirstFile)
	}
	for _, name := range c.options.Exempt {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("%q is no name of a namespace: %s", name, strings.Join(problems, ", "))
		}
	}
	c.language, err = newLanguage(c.version)
	return err
}

// typed is the kind of a converted document, in the version in which the API servers serve it.
func (c *converter) typed(kind string) meta.TypeMeta {
	version := admission.SchemeGroupVersion
	if strings.HasPrefix(kind, "Mutating") && !c.has(firstMAP) {
		version.Version = "v1beta1"
	}
	return meta.TypeMeta{APIVersion: version.String(), Kind: kind}
}

// kubernetes is the version of the API servers, by default the oldest possible.
func (o Options) kubernetes() string {
	switch {
	case o.Kubernetes != "":
		return o.Kubernetes
	case o.Static:
		return FirstFile
	}
	return Oldest
}

// has reports whether the API servers have a version, or a later one.
func (c *converter) has(wanted string) bool {
	return c.version.AtLeast(version.MustParseGeneric(wanted))
}

// document converts one document. Its converted parts are dropped if a part cannot be.
func (c *converter) document(d source.Document) {
	before, converted := len(c.Problems), len(c.policies)
	switch {
	case kyvernocel.IsKind(d.APIVersion, d.Kind, validating.Kind):
		c.validatingPolicy(d)
	case kyvernocel.IsKind(d.APIVersion, d.Kind, mutating.Kind):
		c.mutatingPolicy(d)
	case kyverno.Recognises(d.APIVersion, d.Kind):
		c.clusterPolicy(d)
	default:
		c.Refuse(d.At("kind"), fmt.Sprintf("%s %s has no form that an API server evaluates", d.APIVersion, d.Kind),
			"want ClusterPolicy, Policy, ValidatingPolicy, MutatingPolicy or a namespaced kind: keep the document in the gateway")
	}
	if len(c.Problems) > before {
		c.policies = c.policies[:converted]
	}
}

// add adds a policy under its name.
func (c *converter) add(d source.Document, p Policy) {
	if problems := validation.IsDNS1123Subdomain(p.Name); len(problems) > 0 {
		c.Refuse(d.At("metadata.name"), fmt.Sprintf("would name the policy %q", p.Name), strings.Join(problems, ", "))
	}
	if _, taken := c.origins[p.Name]; taken {
		c.Refuse(d.At("metadata.name"), fmt.Sprintf("another policy is named %q, too", p.Name),
			"policies of the API server are in no namespace: rename one of the two")
	}
	c.origins[p.Name] = d.Prefix
	c.policies = append(c.policies, p)
}

// identity is the name and the metadata of a converted policy.
type identity struct {
	name, namespace     string
	labels, annotations map[string]string
}

// named returns the identity of a generated rule, or of the policy itself for an empty prefix. The name
// of a policy of a namespace begins with the namespace.
func (c *converter) named(of identity, prefix string) identity {
	if of.namespace != "" {
		of.name = of.namespace + "-" + of.name
	}
	of.name = prefix + of.name
	if c.options.Static {
		of.name += StaticSuffix
	}
	return of
}

// meta is the metadata of a policy.
func (i identity) meta() meta.ObjectMeta {
	return meta.ObjectMeta{Name: i.name, Labels: i.labels, Annotations: i.annotations}
}

// confined returns a match in a namespace; the same for an empty one. Resources of the cluster are in
// no namespace, and a selector of namespaces does not exclude them.
func confined(match admission.MatchResources, namespace string) *admission.MatchResources {
	if namespace == "" {
		return &match
	}
	selector := meta.LabelSelector{}
	if match.NamespaceSelector != nil {
		selector = *match.NamespaceSelector.DeepCopy()
	}
	selector.MatchExpressions = append(selector.MatchExpressions, meta.LabelSelectorRequirement{
		Key: namespaceLabel, Operator: meta.LabelSelectorOpIn, Values: []string{namespace},
	})
	match.NamespaceSelector = &selector
	scope := admission.NamespacedScope
	match.ResourceRules = slices.Clone(match.ResourceRules)
	for i := range match.ResourceRules {
		match.ResourceRules[i].Scope = &scope
	}
	return &match
}

// exempted is the match of a binding: nil for every namespace.
func (c *converter) exempted() *admission.MatchResources {
	if len(c.options.Exempt) == 0 {
		return nil
	}
	return &admission.MatchResources{NamespaceSelector: &meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{{
		Key: namespaceLabel, Operator: meta.LabelSelectorOpNotIn, Values: c.options.Exempt,
	}}}}
}

// problemsOf refuses each of the joined errors of a compiler.
func (c *converter) problemsOf(d source.Document, err error) {
	var field *kyvernocel.FieldError
	if errors.As(err, &field) {
		c.Refuse(d.At(field.Path), field.Err.Error(), "mend the policy")
		return
	}
	c.Refuse(d.Prefix, strings.TrimPrefix(err.Error(), "policy in "+inFile+": "), "mend the policy")
}

// inFile is the source for the compilers; the path of a problem has the name of the file.
const inFile = "the file"
