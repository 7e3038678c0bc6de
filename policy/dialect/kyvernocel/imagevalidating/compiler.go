package imagevalidating

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// Options are the optional dependencies of a Compiler. A policy that needs a missing one is
// undecided.
type Options struct {
	// Resources, HTTP and GlobalContext implement the libraries of those names. They are called
	// within requests.
	Resources     cel.Resources
	HTTP          cel.HTTP
	GlobalContext cel.GlobalContext
	// Images supplies the data of images that the gate does not verify: those that
	// spec.matchImageReferences exclude, and those of no object.
	Images Images
	// Kinds lists the kinds of the cluster in addition to Kubernetes' own. With nil, a policy
	// that names others is refused. With constraint.Later it is accepted, and matches none of
	// them until they are served.
	Kinds constraint.Resources
	// Roots answers for the TUF repositories of attestors.
	Roots attestor.Roots
	// SecretNamespace is where the registry secrets of a policy are; empty means
	// "kyverno", as in Kyverno.
	SecretNamespace string
	// Now is the clock of time.now, and Random the source of random.
	Now    func() time.Time
	Random io.Reader
}

// Images reads image data from registries.
type Images interface {
	// ImageData returns the result of image.GetMetadata.
	ImageData(ctx context.Context, reference string, credentials policy.Credentials) (map[string]any, error)
}

// Compiler compiles policies and exceptions. It is immutable and safe for concurrent
// use.
type Compiler struct {
	options      Options
	environments environments
	schemas      *schema.Finder
}

// New makes a Compiler.
func New(options Options) *Compiler {
	if options.SecretNamespace == "" {
		options.SecretNamespace = "kyverno"
	}
	return &Compiler{options: options, environments: newEnvironments(), schemas: schema.NewFinder()}
}

// document is a policy as it is written.
type document struct {
	kyvernocel.Head
	Spec   v1alpha1.ImageValidatingPolicySpec `json:"spec"`
	Status json.RawMessage                    `json:"status,omitempty"`
}

// Compile compiles one document, YAML or JSON. Source is where it was read. Errors refer to
// fields, with their paths, all of them joined; a policy with an error never becomes active in
// part.
func (c *Compiler) Compile(text []byte, source string) (*policy.Policy, error) {
	compiled, err := c.compile(text, source)
	if err != nil {
		return nil, fmt.Errorf("policy in %s: %w", source, err)
	}
	return compiled, nil
}

func (c *Compiler) compile(text []byte, source string) (*policy.Policy, error) {
	var d document
	data, err := field.Read(text, &d)
	if err != nil {
		return nil, err
	}
	out, err := d.NewPolicy(data, clusterKind, source)
	if err != nil {
		return nil, err
	}
	b := &builder{Compiler: c, spec: &d.Spec, out: out}
	if err := b.build(); err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.Kind, out.Name, err)
	}
	return b.out, nil
}

// builder compiles one policy.
type builder struct {
	*Compiler
	spec *v1alpha1.ImageValidatingPolicySpec
	out  *policy.Policy
	// json: the policy is about documents that are no Kubernetes objects.
	json bool
}

// checkFields refuses expressions that read a field that none of the policy's kinds has, or
// returns warnings for them.
func (b *builder) checkFields(r *rule) error {
	programs := slices.Concat(r.program.scope.Variables(), r.program.expressions())
	warnings, err := kyvernocel.FieldCheck{Finder: b.schemas, EveryGroup: kyvernocel.EveryGroup(b.spec.MatchConstraints)}.Check(r.match.Kinds(), programs...)
	b.out.Warnings = append(b.out.Warnings, warnings...)
	return err
}

func (b *builder) build() error {
	action, err := b.settings()
	if err != nil {
		return err
	}
	program, err := b.program()
	if err != nil {
		return err
	}
	r := &rule{
		name: b.out.Name, program: program, action: action, compiler: b.Compiler, namespace: b.out.Namespace, json: b.json,
		quiet: !b.spec.AdmissionEnabled(), mutate: isTrue(b.spec.ValidationConfigurations.MutateDigest),
		verify: isTrue(b.spec.ValidationConfigurations.VerifyDigest), required: isTrue(b.spec.ValidationConfigurations.Required),
		named: true,
	}
	kyvernocel.OmitFromScans(b.out, program.expressions()...)
	for _, a := range program.attestors {
		kyvernocel.OmitFromScans(b.out, a.Expressions()...)
	}
	if err := kyvernocel.CheckEvaluated(b.out, !b.spec.AdmissionEnabled(), b.json); err != nil {
		return err
	}
	r.references, err = b.compileReferences(b.spec.MatchImageReferences, "spec.matchImageReferences")
	if err != nil {
		return err
	}
	if !b.json {
		r.match, err = constraint.Compile(b.spec.MatchConstraints, "spec.matchConstraints", b.options.Kinds)
		if err != nil {
			return err
		}
		if err := errors.Join(r.match.Askable("spec.matchConstraints", !r.quiet), r.match.InNamespace(r.namespace, "spec.matchConstraints")); err != nil {
			return err
		}
		b.out.Unserved = r.match.Unserved()
		if err := errors.Join(kyvernocel.ImageOperations(b.spec.MatchConstraints, program.ofObject), b.checkFields(r)); err != nil {
			return err
		}
	}
	r.credentials, err = b.credentials()
	if err != nil {
		return err
	}
	b.out.Warnings = append(b.out.Warnings, r.warnings()...)
	followers, err := b.followers(r)
	if err != nil {
		return err
	}
	for _, each := range append([]*rule{r}, followers...) {
		if each.match != nil {
			each.targets = kyvernocel.Confine(each.match.Targets(), b.out.Namespace)
		}
		b.out.Rules = append(b.out.Rules, each)
		if b.spec.AdmissionEnabled() {
			b.out.Targets = append(b.out.Targets, each.targets...)
		}
	}
	b.out.AuditOnly = action != policy.Enforce
	return nil
}

// settings reads the fields other than expressions and matches.
func (b *builder) settings() (policy.Action, error) {
	settings := kyvernocel.Settings{FailurePolicy: b.spec.FailurePolicy, Webhook: b.spec.WebhookConfiguration,
		Mode: b.spec.EvaluationMode(), Unscanned: !b.spec.BackgroundEnabled()}
	isJSON, unset := settings.Apply(b.out)
	b.json = isJSON
	action, err := kyvernocel.ActionOf(b.spec.ValidationAction)
	return action, errors.Join(unset, err)
}

// credentials reads spec.credentials. Secrets are in the namespace of the gateway's
// own secrets, or in that of a policy of a namespace.
func (b *builder) credentials() (policy.Credentials, error) {
	doc := b.spec.Credentials
	if doc == nil {
		return policy.Credentials{}, nil
	}
	out := policy.Credentials{AllowInsecure: doc.AllowInsecureRegistry}
	var errs []error
	for i, p := range doc.Providers {
		if !slices.Contains([]v1alpha1.CredentialsProvidersType{v1alpha1.DEFAULT, v1alpha1.AWS, v1alpha1.ACR, v1alpha1.GCP, v1alpha1.GHCR}, p) {
			errs = append(errs, field.Fail(fmt.Sprintf("spec.credentials.providers[%d]", i), "unknown provider %q: want default, amazon, azure, google or github", p))
		}
		out.Providers = append(out.Providers, string(p))
	}
	home := b.options.SecretNamespace
	if b.out.Namespace != "" {
		home = b.out.Namespace
	}
	for i, name := range doc.Secrets {
		path := fmt.Sprintf("spec.credentials.secrets[%d]", i)
		namespace, rest, qualified := strings.Cut(name, "/")
		switch {
		case !qualified:
			namespace, rest = home, name
		case b.out.Namespace != "" && namespace != b.out.Namespace:
			errs = append(errs, field.Fail(path, "a policy of namespace %s cannot read the secrets of namespace %s", b.out.Namespace, namespace))
		}
		if namespace == "" || rest == "" || strings.Contains(rest, "/") {
			errs = append(errs, field.Fail(path, "%q: want the name of a secret", name))
		}
		out.Secrets = append(out.Secrets, namespace+"/"+rest)
	}
	if len(doc.Secrets) > maxEntries || len(doc.Providers) > maxEntries {
		errs = append(errs, field.Fail("spec.credentials", "more than %d entries", maxEntries))
	}
	return out, errors.Join(errs...)
}

// inputs are the common inputs of every evaluation.
func (c *Compiler) inputs(namespace string) cel.Inputs {
	return cel.Inputs{
		Namespace: namespace, Now: c.options.Now, Random: c.options.Random,
		Outside: cel.Outside{Resources: c.options.Resources, HTTP: c.options.HTTP, GlobalContext: c.options.GlobalContext},
	}
}

var _ interface {
	Compile(document []byte, source string) (*policy.Policy, error)
} = (*Compiler)(nil)
