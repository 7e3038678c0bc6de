package validating

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

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

// Options are the optional dependencies of a Compiler. A policy that needs a missing one is
// undecided.
type Options struct {
	// Outside answers the libraries of its members' names. It is asked within requests.
	Outside cel.Outside
	// Kinds lists the kinds of the cluster in addition to Kubernetes' own. With nil, a policy
	// that names others is refused. With constraint.Later it is accepted, and matches none of
	// them until they are served.
	Kinds constraint.Resources
	// Now is the clock of time.now, and Random the source of random.
	Now    func() time.Time
	Random io.Reader
}

// Compiler compiles policies. It is immutable and safe for concurrent use.
type Compiler struct {
	options      Options
	environments environments
	schemas      *schema.Finder
}

// New makes a Compiler.
func New(options Options) *Compiler {
	return &Compiler{options: options, environments: newEnvironments(), schemas: schema.NewFinder()}
}

// document is a policy as it is written.
type document struct {
	kyvernocel.Head
	Spec   v1alpha1.ValidatingPolicySpec `json:"spec"`
	Status json.RawMessage               `json:"status,omitempty"`
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
	out, err := d.NewPolicy(data, Kind, source)
	if err != nil {
		return nil, err
	}
	b := &builder{Compiler: c, spec: &d.Spec, out: out}
	if err := b.build(); err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.Kind, out.Name, err)
	}
	return out, nil
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
	warnings, err := kyvernocel.FieldCheck{Finder: b.schemas, EveryGroup: kyvernocel.EveryGroup(b.spec.MatchConstraints)}.Check(r.match.Kinds(), programs...)
	b.out.Warnings = append(b.out.Warnings, warnings...)
	return err
}

// rules returns the rule with its match, and the rules generated from it.
func (b *builder) rules(r *rule) ([]*rule, error) {
	var autogen *v1alpha1.PodControllersGenerationConfiguration
	if doc := b.spec.AutogenConfiguration; doc != nil {
		if made := doc.ValidatingAdmissionPolicy; made != nil && made.Enabled != nil && *made.Enabled {
			return nil, field.Fail("spec.autogen.validatingAdmissionPolicy.enabled",
				"true is not supported: no ValidatingAdmissionPolicy is made here, and the gateway enforces the policy itself: remove the field")
		}
		autogen = doc.PodControllers
	}
	match := b.spec.MatchConstraints
	if b.json {
		match = nil
	} else {
		var err error
		r.match, err = constraint.Compile(match, "spec.matchConstraints", b.options.Kinds)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(r.match.Askable("spec.matchConstraints", !r.quiet), r.match.InNamespace(r.namespace, "spec.matchConstraints")); err != nil {
			return nil, err
		}
		b.out.Unserved = r.match.Unserved()
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
	p.conditionScope, err = kyvernocel.NewScope(language.conditions)
	if err != nil {
		return nil, err
	}
	p.scope, err = kyvernocel.NewScope(language.validations)
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

// inputs are what every evaluation has, whatever it is about.
func (c *Compiler) inputs(namespace string) cel.Inputs {
	return cel.Inputs{Namespace: namespace, Now: c.options.Now, Random: c.options.Random, Outside: c.options.Outside}
}

var _ interface {
	Compile(document []byte, source string) (*policy.Policy, error)
} = (*Compiler)(nil)
