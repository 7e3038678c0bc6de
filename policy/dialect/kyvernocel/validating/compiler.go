package validating

import (
	"errors"
	"slices"
	"strconv"

	celgo "github.com/google/cel-go/cel"
	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// Compiler compiles policies. It is immutable and safe for concurrent use.
type Compiler struct {
	options      kyvernocel.Options
	environments environments
	schemas      *schema.Finder
}

// New makes a Compiler.
func New(options kyvernocel.Options) *Compiler {
	return &Compiler{options: options, environments: newEnvironments(), schemas: schema.NewFinder()}
}

// Recognises reports whether a document of this apiVersion and kind is a policy of this dialect.
func (*Compiler) Recognises(apiVersion, kind string) bool {
	return kyvernocel.IsKind(apiVersion, kind, Kind)
}

// Compile compiles one document; see kyvernocel.Compile.
func (c *Compiler) Compile(text []byte, source string) (*policy.Policy, error) {
	return kyvernocel.Compile(text, Kind, source, func(spec *v1alpha1.ValidatingPolicySpec, out *policy.Policy) error {
		return (&builder{Compiler: c, spec: spec, out: out}).build()
	})
}

// Broken returns a policy that replaces a document which does not compile; see kyvernocel.ReadBroken.
func (c *Compiler) Broken(text []byte, source string, why error) *policy.Policy {
	p, rough := kyvernocel.ReadBroken(text, source, why, kyvernocel.Roughly{Targets: func(doc *admission.MatchResources) ([]policy.Target, bool) {
		return constraint.RoughOfAll(doc, c.options.Kinds)
	}, Operations: []string{"CREATE", "UPDATE", "CONNECT"}}) // a kubelet that cannot delete a pod blocks its node
	if p != nil {
		p.Validations = []policy.Validation{rough}
	}
	return p
}

// builder compiles one policy.
type builder struct {
	*Compiler
	spec *v1alpha1.ValidatingPolicySpec
	out  *policy.Policy
	json bool
}

func (b *builder) build() error {
	settings := kyvernocel.Settings{FailurePolicy: b.spec.FailurePolicy, Webhook: b.spec.WebhookConfiguration,
		Mode: b.spec.EvaluationMode(), Unscanned: !b.spec.BackgroundEnabled()}
	isJSON, unset := settings.Apply(b.out)
	b.json = isJSON
	action, unknown := kyvernocel.ActionOf(b.spec.ValidationAction)
	if err := errors.Join(unset, unknown); err != nil {
		return err
	}
	program, err := b.program()
	if err != nil {
		return err
	}
	r := &rule{name: b.out.Name, program: program, action: action, compiler: b.Compiler,
		namespace: b.out.Namespace, json: b.json, quiet: !b.spec.AdmissionEnabled()}
	rules, err := b.rules(r)
	if err != nil {
		return err
	}
	kyvernocel.OmitFromScans(b.out, program.expressions()...)
	if err := kyvernocel.CheckEvaluated(b.out, !b.spec.AdmissionEnabled(), b.json); err != nil {
		return err
	}
	if err := b.checkFields(r); err != nil {
		return err
	}
	for _, each := range rules {
		if each.match != nil {
			each.targets = kyvernocel.Confine(each.match.TargetsOfAll(), b.out.Namespace)
		}
		b.out.Validations = append(b.out.Validations, each)
	}
	b.out.AuditOnly = action != policy.Enforce
	return nil
}

// checkFields refuses expressions that read what no matched kind has.
func (b *builder) checkFields(r *rule) error {
	if r.match == nil {
		return nil
	}
	programs := slices.Concat(r.program.scope.Variables(), r.program.expressions())
	return kyvernocel.FieldCheck{Finder: b.schemas, EveryGroup: kyvernocel.EveryGroup(b.spec.MatchConstraints)}.Note(b.out, r.match.Kinds(), programs...)
}

// rules returns the rule with its match, and the rules generated from it.
func (b *builder) rules(r *rule) ([]*rule, error) {
	var autogen *v1alpha1.PodControllersGenerationConfiguration
	if doc := b.spec.AutogenConfiguration; doc != nil {
		autogen = doc.PodControllers
	}
	match := b.spec.MatchConstraints
	if b.json {
		match = nil
	} else {
		var err error
		r.match, err = b.options.CompileMatch(match, b.out, !r.quiet)
		if err != nil {
			return nil, err
		}
	}
	rules := []*rule{r}
	followers, err := kyvernocel.Followers(r.name, match, autogen)
	for _, f := range followers {
		follower := *r
		follower.name, follower.match, follower.template = f.Name, f.Match, f.Template
		rules = append(rules, &follower)
	}
	return rules, err
}

// program is the compiled expressions of a policy. The generated rules share it.
type program struct {
	conditionScope, scope *cel.Scope
	conditions            kyvernocel.Conditions
	validations           []validation
	annotations           kyvernocel.Annotations
}

// expressions are those that are evaluated about an object; nil is none.
func (p *program) expressions() []*cel.Program {
	programs := slices.Concat(p.conditions, p.annotations.Programs())
	for i := range p.validations {
		programs = append(programs, p.validations[i].holds, p.validations[i].words)
	}
	return programs
}

// validation is one entry of spec.validations.
type validation struct {
	path    string
	holds   *cel.Program
	message string
	words   *cel.Program // nil for none
}

func (b *builder) program() (*program, error) {
	p := &program{}
	language := b.environments.of(b.json, b.out.Namespace != "")
	var err error
	p.conditionScope, err = kyvernocel.NewScope(language)
	if err != nil {
		return nil, err
	}
	p.scope, err = kyvernocel.NewScope(language)
	if err != nil {
		return nil, err
	}
	if err := kyvernocel.Declare(p.scope, b.spec.Variables); err != nil {
		return nil, err
	}
	var errs [3]error
	p.conditions, errs[0] = kyvernocel.CompileConditions(p.conditionScope, b.spec.MatchConditions, "spec.matchConditions")
	errs[1] = b.validations(p)
	p.annotations, errs[2] = kyvernocel.CompileAnnotations(p.scope, b.spec.AuditAnnotations)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if len(p.validations)+len(p.annotations) == 0 {
		return nil, field.Fail("spec.validations", "is empty, and so are spec.auditAnnotations: the policy would do nothing")
	}
	return p, readsKnown(p)
}

// readsKnown refuses reads of fields that are unknown to the gateway.
func readsKnown(p *program) error {
	var errs []error
	for _, each := range p.annotations.Programs() {
		errs = append(errs, kyvernocel.ReadsKnown(each))
	}
	for i := range p.validations {
		errs = append(errs, kyvernocel.ReadsKnown(p.validations[i].holds))
		if words := p.validations[i].words; words != nil {
			errs = append(errs, kyvernocel.ReadsKnown(words))
		}
	}
	return errors.Join(errs...)
}

func (b *builder) validations(p *program) error {
	if len(b.spec.Validations) > kyvernocel.MaxEntries {
		return field.Fail("spec.validations", "%d are more than %d", len(b.spec.Validations), kyvernocel.MaxEntries)
	}
	var errs []error
	for i, doc := range b.spec.Validations {
		v, err := newValidation(p.scope, doc, "spec.validations["+strconv.Itoa(i)+"]")
		errs = append(errs, err)
		p.validations = append(p.validations, v)
	}
	return errors.Join(errs...)
}

func newValidation(scope *cel.Scope, doc admission.Validation, path string) (validation, error) {
	v := validation{path: path, message: doc.Message}
	if v.message == "" {
		v.message = "the validation does not hold: " + kyvernocel.Shorten(doc.Expression)
	}
	var errs [2]error
	v.holds, errs[0] = scope.Compile(path+".expression", doc.Expression, celgo.BoolType)
	if doc.MessageExpression != "" {
		v.words, errs[1] = scope.Compile(path+".messageExpression", doc.MessageExpression, celgo.StringType)
	}
	return v, errors.Join(errs[0], errs[1], kyvernocel.CheckReason(doc, path))
}
