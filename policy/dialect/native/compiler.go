package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	celgo "github.com/google/cel-go/cel"
	admission "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/mutation"
)

// paramsName is the variable of the parameters in expressions.
const paramsName = "params"

// Options are the dependencies of policies.
type Options struct {
	kyvernocel.Options
	// Unbound: a policy without a binding is evaluated as one with a binding for everything, without
	// parameters and with the action Deny, as in Kyverno's suites.
	Unbound bool
}

// Compiler compiles policies. It is immutable and safe for concurrent use.
type Compiler struct {
	options  Options
	language map[environment]func() (*cel.Env, error)
	// types are read when a document first needs them.
	types   func() *mutation.Types
	schemas *schema.Finder
}

// Unbound returns a compiler with Options.Unbound.
func (c *Compiler) Unbound() *Compiler {
	unbound := *c
	unbound.options.Unbound = true
	return &unbound
}

// environment selects the language of a policy.
type environment struct{ params, patches bool }

// New makes a Compiler.
func New(options Options) *Compiler {
	c := &Compiler{options: options, language: map[environment]func() (*cel.Env, error){}, types: sync.OnceValue(mutation.NewTypes), schemas: schema.NewFinder()}
	for _, of := range []environment{{}, {params: true}, {patches: true}, {true, true}} {
		o := cel.Options{Kubernetes: true, Authorizer: true, Patches: of.patches, Variables: kyvernocel.OfObject()}
		if of.params {
			o.Variables = append(o.Variables, cel.Variable{Name: paramsName, Type: celgo.DynType})
		}
		c.language[of] = sync.OnceValues(func() (*cel.Env, error) { return cel.NewEnv(o) })
	}
	return c
}

// Recognises reports whether a document of this apiVersion and kind is a policy of this dialect.
func (*Compiler) Recognises(apiVersion, kind string) bool { return IsPolicy(apiVersion, kind) }

// joined is a policy as Join writes it.
type joined[S any] struct {
	kyvernocel.Head
	Spec     S                 `json:"spec"`
	Status   json.RawMessage   `json:"status,omitempty"`
	Bindings []json.RawMessage `json:"bindings,omitempty"`
}

// Compile compiles one document that Join returned, YAML or JSON. Source is where it was read. Errors
// refer to fields, with their paths, all of them joined.
func (c *Compiler) Compile(text []byte, source string) (*policy.Policy, error) {
	p, err := c.compile(text, source)
	if err != nil {
		return nil, fmt.Errorf("policy in %s: %w", source, err)
	}
	return p, nil
}

func (c *Compiler) compile(text []byte, source string) (*policy.Policy, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if len(text) <= field.MaxDocument {
		_ = yaml.Unmarshal(text, &head) // what cannot be read is an error below
	}
	if head.Kind == MutatingKind {
		return compileAs(c, text, source, func(b *builder, spec *admission.MutatingAdmissionPolicySpec) error { return b.mutating(spec) })
	}
	return compileAs(c, text, source, func(b *builder, spec *admission.ValidatingAdmissionPolicySpec) error { return b.validating(spec) })
}

func compileAs[S any](c *Compiler, text []byte, source string, build func(b *builder, spec *S) error) (*policy.Policy, error) {
	var d joined[S]
	data, err := field.Read(text, &d)
	if err != nil {
		return nil, err
	}
	if !IsPolicy(d.APIVersion, d.Kind) {
		return nil, fmt.Errorf("%s %s is no policy of %s/v1, v1beta1 or v1alpha1", d.APIVersion, d.Kind, Group)
	}
	meta, err := d.ReadMetadata()
	if err != nil {
		return nil, err
	}
	out := &policy.Policy{
		Settings: policy.Settings{OfServer: true}, Kind: d.Kind, Name: meta.Name, Source: source, Hash: kyvernocel.HashOf(data), Metadata: meta.Description(),
	}
	b := &builder{Compiler: c, out: out, documents: d.Bindings}
	if err := build(b, &d.Spec); err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.Kind, out.Name, err)
	}
	return out, nil
}

// builder compiles one policy.
type builder struct {
	*Compiler
	out       *policy.Policy
	documents []json.RawMessage // of the bindings
	match     *constraint.Constraint
	program   *program
}

// definition are the members that both kinds of policies have.
type definition struct {
	failure    *admission.FailurePolicyType
	params     *admission.ParamKind
	match      *admission.MatchResources
	conditions []admission.MatchCondition
	variables  []admission.Variable
	patches    bool
}

// common compiles what both kinds of policies have.
func (b *builder) common(d definition) error {
	errs := []error{b.failure(d.failure)}
	if d.match == nil || len(d.match.ResourceRules) == 0 {
		return errors.Join(append(errs, field.Fail("spec.matchConstraints.resourceRules", "is empty: say which resources are meant"))...)
	}
	if k := d.params; k != nil && (k.APIVersion == "" || k.Kind == "") {
		errs = append(errs, field.Fail("spec.paramKind", "want an apiVersion and a kind"))
	}
	var warnings []string
	var err error
	b.match, warnings, err = constraint.CompileNative(d.match, "spec.matchConstraints", b.options.Kinds)
	errs = append(errs, err)
	if err == nil {
		b.out.Warnings, b.out.Unserved = append(b.out.Warnings, warnings...), b.match.Unserved()
	}
	b.program, err = b.newProgram(d)
	return errors.Join(append(errs, err)...)
}

// failure reads failurePolicy.
func (b *builder) failure(f *admission.FailurePolicyType) error {
	switch {
	case f == nil || *f == admission.Fail:
	case *f == admission.Ignore:
		b.out.FailOpen = true
	default:
		return field.Fail("spec.failurePolicy", "unknown value %q: want Fail or Ignore", *f)
	}
	return nil
}

// checkFields notes expressions that read what no matched kind has: the API server accepts them, and
// writes the same warning into the status.
func (b *builder) checkFields(programs ...*cel.Program) {
	check := kyvernocel.FieldCheck{Finder: b.schemas}
	warnings, err := check.Check(b.match.Kinds(), programs...)
	b.out.Warnings = append(b.out.Warnings, warnings...)
	if err != nil {
		b.out.Warnings = append(b.out.Warnings, err.Error())
	}
}
