package mutating

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"
	alpha "k8s.io/api/admissionregistration/v1alpha1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/mutation"
	"github.com/quaymaster/quaymaster/policy/lang/cel/patchtype"
)

// Compiler compiles policies. It is immutable and safe for concurrent use.
type Compiler struct {
	options             kyvernocel.Options
	cluster, namespaced func() (*cel.Env, error)
	// existing are the languages of policies for existing objects.
	existing map[bool]func() (*cel.Env, error)
	// types are read when a document first needs them.
	types   func() *mutation.Types
	schemas *schema.Finder
}

// New makes a Compiler.
func New(options kyvernocel.Options) *Compiler {
	language := func(namespaced, existing bool) func() (*cel.Env, error) {
		o := kyvernocel.Reach(namespaced)
		o.Variables, o.Patches = kyvernocel.WithExceptions(), true
		if existing {
			o.Variables, o.RequestPrefix = kyvernocel.OfTrigger(), kyvernocel.TriggerPrefix
		}
		return sync.OnceValues(func() (*cel.Env, error) { return cel.NewEnv(o) })
	}
	return &Compiler{
		options: options, cluster: language(false, false), namespaced: language(true, false),
		existing: map[bool]func() (*cel.Env, error){false: language(false, true), true: language(true, true)},
		types:    sync.OnceValue(mutation.NewTypes), schemas: schema.NewFinder(),
	}
}

// Recognises reports whether a document of this apiVersion and kind is a policy of this dialect.
func (*Compiler) Recognises(apiVersion, kind string) bool {
	return kyvernocel.IsKind(apiVersion, kind, Kind)
}

// Compile compiles one document; see kyvernocel.Compile.
func (c *Compiler) Compile(text []byte, source string) (*policy.Policy, error) {
	return kyvernocel.Compile(text, Kind, source, func(spec *v1alpha1.MutatingPolicySpec, out *policy.Policy) error {
		return (&builder{Compiler: c, spec: spec, out: out}).build()
	})
}

// Broken returns a policy that replaces a document which does not compile; see kyvernocel.ReadBroken.
func (c *Compiler) Broken(text []byte, source string, why error) *policy.Policy {
	p, rough := kyvernocel.ReadBroken(text, source, why, kyvernocel.Roughly{Targets: func(doc *admission.MatchResources) ([]policy.Target, bool) {
		return constraint.Rough(doc, c.options.Kinds)
	}})
	if p != nil {
		p.Mutations = []policy.Mutation{kyvernocel.BrokenMutation{Broken: rough}}
	}
	return p
}

// builder compiles one policy.
type builder struct {
	*Compiler
	spec *v1alpha1.MutatingPolicySpec
	out  *policy.Policy
}

func (b *builder) build() error {
	if err := b.settings(); err != nil {
		return err
	}
	program, err := b.program()
	if err != nil {
		return err
	}
	r := &rule{name: b.out.Name, program: program, compiler: b.Compiler, namespace: b.out.Namespace, quiet: !b.spec.AdmissionEnabled()}
	r.match, err = b.options.CompileMatch(b.spec.MatchConstraints, b.out, !r.quiet && b.spec.TargetMatchConstraints == nil)
	if err != nil {
		return err
	}
	existing := b.spec.MutateExistingEnabled()
	if len(r.match.Targets()) == 0 && !existing {
		return field.Fail("spec.matchConstraints.resourceRules", "are about neither CREATE nor UPDATE, and nothing else leaves an object to be changed")
	}
	r.targets = kyvernocel.Confine(r.match.Targets(), b.out.Namespace)
	var alters *alteration
	if existing {
		alters, err = b.alteration(r)
		if err != nil {
			return err
		}
		b.out.Alterations = append(b.out.Alterations, alters)
	}
	kyvernocel.OmitFromScans(b.out, program.expressions()...)
	if err := b.checkFields(r, alters); err != nil {
		return err
	}
	if b.spec.TargetMatchConstraints != nil || len(r.targets) == 0 {
		return nil // it is about those alone, or about deletions alone
	}
	return b.atAdmission(r)
}

// checkFields refuses expressions that read a field that none of the policy's matched or, in an
// alteration, changed kinds has; or returns warnings for them.
func (b *builder) checkFields(r *rule, alters *alteration) error {
	triggers := r.match.Kinds()
	changed, programs := triggers, r.program.annotations.Programs()
	for i := range r.program.mutations {
		programs = append(programs, r.program.mutations[i].makes)
	}
	if alters != nil && !alters.self {
		changed = nil
		for _, s := range alters.kinds() {
			group, version, found := strings.Cut(s.APIVersion, "/")
			if !found {
				group, version = "", s.APIVersion
			}
			changed = append(changed, policy.Target{Group: group, Version: version, Kind: s.Kind})
		}
		programs = append(programs, alters.conditions...)
	}
	check := kyvernocel.FieldCheck{Finder: b.schemas, EveryGroup: kyvernocel.EveryGroup(b.spec.MatchConstraints)}
	return errors.Join(
		check.Note(b.out, slices.Concat(triggers, changed), r.program.scope.Variables()...),
		check.Note(b.out, triggers, slices.Concat(r.program.conditions, alters.chosen())...),
		check.Note(b.out, changed, programs...),
	)
}

// atAdmission adds a rule, and those that follow from it.
func (b *builder) atAdmission(r *rule) error {
	var autogen *v1alpha1.PodControllersGenerationConfiguration
	if doc := b.spec.AutogenConfiguration; doc != nil {
		autogen = doc.PodControllers
	}
	followers, err := kyvernocel.Followers(r.name, b.spec.MatchConstraints, autogen)
	if err != nil {
		return err
	}
	b.out.Mutations = append(b.out.Mutations, r)
	for _, f := range followers {
		follower := *r
		follower.name, follower.match, follower.template = f.Name, f.Match, f.Template
		follower.targets = kyvernocel.Confine(f.Match.Targets(), b.out.Namespace)
		b.out.Mutations = append(b.out.Mutations, &follower)
	}
	return nil
}

// settings reads the fields other than expressions and matches.
func (b *builder) settings() error {
	settings := kyvernocel.Settings{FailurePolicy: b.spec.FailurePolicy, Webhook: b.spec.WebhookConfiguration, Mode: b.spec.EvaluationMode()}
	isJSON, err := settings.Apply(b.out)
	errs := []error{err}
	if isJSON {
		errs = append(errs, kyvernocel.Unsupported("spec.evaluation.mode", "a mutation of documents that are no Kubernetes objects"))
	}
	if !b.spec.MutateExistingEnabled() {
		if !b.spec.AdmissionEnabled() {
			errs = append(errs, field.Fail("spec.evaluation.admission.enabled",
				"is false, and spec.evaluation.mutateExisting.enabled is not true, so that nothing would be changed"))
		}
		const unused = "selects existing objects to change, and spec.evaluation.mutateExisting.enabled is not true"
		if b.spec.TargetMatchConstraints != nil {
			errs = append(errs, field.Fail("spec.targetMatchConstraints", unused))
		}
		if len(b.spec.TargetMatchConditions) > 0 {
			errs = append(errs, field.Fail("spec.targetMatchConditions", unused))
		}
	}
	switch r := b.spec.GetReinvocationPolicy(); r {
	case alpha.NeverReinvocationPolicy, admission.IfNeededReinvocationPolicy:
	default:
		errs = append(errs, field.Fail("spec.reinvocationPolicy", "unknown value %q: want Never or IfNeeded", r))
	}
	return errors.Join(errs...)
}

// program is the compiled expressions of a policy. The generated rules share it.
type program struct {
	scope       *cel.Scope
	conditions  kyvernocel.Conditions
	mutations   []change
	annotations kyvernocel.Annotations
}

// change is one entry of spec.mutations: the expression, and the way in which its result
// changes an object.
type change struct {
	makes *cel.Program
	// apply changes an object of its own kind. Nil means an unchanged object.
	apply func(made ref.Val, about mutation.Target) (map[string]any, error)
}

// expressions are those that are evaluated about an object.
func (p *program) expressions() []*cel.Program {
	programs := slices.Concat(p.conditions, p.annotations.Programs())
	for i := range p.mutations {
		programs = append(programs, p.mutations[i].makes)
	}
	return programs
}

func (b *builder) program() (*program, error) {
	env := b.cluster
	switch namespaced := b.out.Namespace != ""; {
	case b.spec.MutateExistingEnabled():
		env = b.existing[namespaced]
	case namespaced:
		env = b.namespaced
	}
	p := &program{}
	var err error
	p.scope, err = kyvernocel.NewScope(env)
	if err != nil {
		return nil, err
	}
	if err := kyvernocel.Declare(p.scope, b.spec.Variables); err != nil {
		return nil, err
	}
	var errs [3]error
	p.conditions, errs[0] = kyvernocel.CompileConditions(p.scope, b.spec.MatchConditions, "spec.matchConditions")
	errs[1] = b.mutations(p)
	p.annotations, errs[2] = kyvernocel.CompileAnnotations(p.scope, b.spec.AuditAnnotations)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	var unread []error
	for _, each := range p.annotations.Programs() {
		unread = append(unread, kyvernocel.ReadsKnown(each))
	}
	for i := range p.mutations {
		unread = append(unread, kyvernocel.ReadsKnown(p.mutations[i].makes))
	}
	return p, errors.Join(unread...)
}

func (b *builder) mutations(p *program) error {
	if n := len(b.spec.Mutations); n == 0 || n > kyvernocel.MaxEntries {
		return field.Fail("spec.mutations", "want 1 to %d, found %d", kyvernocel.MaxEntries, n)
	}
	var errs []error
	for i := range b.spec.Mutations {
		m, err := b.mutation(p.scope, &b.spec.Mutations[i], "spec.mutations["+strconv.Itoa(i)+"]")
		errs = append(errs, err)
		p.mutations = append(p.mutations, m)
	}
	return errors.Join(errs...)
}

func (b *builder) mutation(scope *cel.Scope, doc *alpha.Mutation, path string) (m change, err error) {
	switch doc.PatchType {
	case alpha.PatchTypeApplyConfiguration:
		if doc.ApplyConfiguration == nil || doc.JSONPatch != nil {
			return m, field.Fail(path, "want applyConfiguration and nothing else, for patchType ApplyConfiguration")
		}
		types, serverSide := b.types(), b.serverSide()
		m.apply = func(made ref.Val, t mutation.Target) (map[string]any, error) { return types.Apply(made, t, serverSide) }
		m.makes, err = scope.Compile(path+".applyConfiguration.expression", doc.ApplyConfiguration.Expression, patchtype.ObjectType())
	case alpha.PatchTypeJSONPatch:
		if doc.JSONPatch == nil || doc.ApplyConfiguration != nil {
			return m, field.Fail(path, "want jsonPatch and nothing else, for patchType JSONPatch")
		}
		m.apply = mutation.Patch
		m.makes, err = scope.Compile(path+".jsonPatch.expression", doc.JSONPatch.Expression, celgo.ListType(patchtype.PatchType()))
	default:
		return m, field.Fail(path+".patchType", "unknown value %q: want ApplyConfiguration or JSONPatch", doc.PatchType)
	}
	return m, err
}

// serverSide reports whether configurations may replace atomic fields.
func (b *builder) serverSide() bool {
	return b.spec.EvaluationConfiguration != nil && b.spec.EvaluationConfiguration.UseServerSideApply
}
