package imagevalidating

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/components"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
)

// Options are the optional dependencies of a Compiler.
type Options struct {
	kyvernocel.Options
	// Images supplies the data of images that the gate does not verify: those that
	// spec.matchImageReferences exclude, and those of no object.
	Images Images
	// Roots answers for the TUF repositories of attestors.
	Roots attestor.Roots
	// SecretNamespace is where the registry secrets of a policy are; empty means
	// "kyverno", as in Kyverno.
	SecretNamespace string
	// Bills keeps parsed bills of materials; nil: they are parsed by every evaluation.
	Bills *components.Cache
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
	options.Outside.Images = nil // set by each evaluation, which answers from the gate's data first
	return &Compiler{options: options, environments: newEnvironments(), schemas: schema.NewFinder()}
}

// Recognises reports whether a document of this apiVersion and kind is a policy of this dialect.
func (*Compiler) Recognises(apiVersion, kind string) bool {
	return kyvernocel.IsKind(apiVersion, kind, Kind)
}

// Compile compiles one document; see kyvernocel.Compile.
func (c *Compiler) Compile(text []byte, source string) (*policy.Policy, error) {
	return kyvernocel.Compile(text, Kind, source, func(spec *v1alpha1.ImageValidatingPolicySpec, out *policy.Policy) error {
		return (&builder{Compiler: c, spec: spec, out: out}).build()
	})
}

// Broken returns a policy that replaces a document which does not compile; see kyvernocel.ReadBroken.
func (c *Compiler) Broken(text []byte, source string, why error) *policy.Policy {
	p, rough := kyvernocel.ReadBroken(text, source, why, kyvernocel.Roughly{Targets: func(doc *admission.MatchResources) ([]policy.Target, bool) {
		return constraint.Rough(doc, c.options.Kinds)
	}})
	if p != nil {
		p.Rules = []policy.Rule{rough}
	}
	return p
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
	return kyvernocel.FieldCheck{Finder: b.schemas, EveryGroup: kyvernocel.EveryGroup(b.spec.MatchConstraints)}.Note(b.out, r.match.Kinds(), programs...)
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
		quiet: !b.spec.AdmissionEnabled(), configurations: configurations{
			mutate: isTrue(b.spec.ValidationConfigurations.MutateDigest),
			verify: isTrue(b.spec.ValidationConfigurations.VerifyDigest), required: isTrue(b.spec.ValidationConfigurations.Required),
		},
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
		r.match, err = b.options.CompileMatch(b.spec.MatchConstraints, b.out, !r.quiet)
		if err != nil {
			return err
		}
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
