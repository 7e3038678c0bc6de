package validate

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	celgo "github.com/google/cel-go/cel"
	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// maxExpressions bounds the expressions of one rule.
const maxExpressions = 200

// paramsName is the name of the parameters in expressions.
const paramsName = "params"

// Language is the CEL of rules: that of Kubernetes' ValidatingAdmissionPolicy, without
// authorizer. It is safe for concurrent use.
type Language struct {
	plain, withParams func() (*cel.Env, error)
	options           LanguageOptions
	schemas           *schema.Finder
}

// LanguageOptions are the dependencies of expressions.
type LanguageOptions struct {
	// Params looks parameters up; without it a rule with paramKind cannot be evaluated.
	Params cel.Resources
	// Now and Random are as in cel.Inputs.
	Now    func() time.Time
	Random io.Reader
}

// NewLanguage returns the language; it is made when the first rule needs it, which
// takes milliseconds.
func NewLanguage(options LanguageOptions) *Language {
	env := func(more ...cel.Variable) func() (*cel.Env, error) {
		return sync.OnceValues(func() (*cel.Env, error) {
			return cel.NewEnv(cel.Options{Variables: append(kyvernocel.OfObject(), more...)})
		})
	}
	return &Language{options: options, schemas: schema.NewFinder(), plain: env(), withParams: env(cel.Variable{Name: paramsName, Type: celgo.DynType})}
}

// Environment returns the language without parameters.
func (l *Language) Environment() (*cel.Env, error) { return l.plain() }

// program is a compiled cel rule.
type program struct {
	path          string
	language      *Language
	template      kyvernocel.Template
	scope         *cel.Scope
	preconditions kyvernocel.Conditions
	expressions   []expression
	annotations   []annotation
	params        *params // nil for none
}

type expression struct {
	path           string
	holds, message *cel.Program // message is nil for none
	text           string       // of the policy, or ""
	source         string
}

type annotation struct {
	key   string
	value *cel.Program
}

func (c compiler) cel(doc *Document, path string) (checker, error) {
	spec, place := doc.Validate.CEL, path+".cel"
	p := &program{path: place, language: c.CEL, template: c.Template}
	env := c.CEL.plain
	var errs []error
	var err error
	if spec.ParamKind != nil || spec.ParamRef != nil {
		env = c.CEL.withParams
		p.params, err = compileParams(spec, place, c.context().Namespace)
		errs = append(errs, err)
	}
	p.scope, err = kyvernocel.NewScope(env)
	if err != nil {
		return nil, errors.Join(append(errs, field.Below(place, err))...)
	}
	conditions := make([]admission.MatchCondition, len(doc.CELPreconditions))
	for i, m := range doc.CELPreconditions {
		// Kyverno has no rule for their names.
		conditions[i] = admission.MatchCondition{Name: "precondition-" + strconv.Itoa(i), Expression: m.Expression}
	}
	for i, v := range spec.Variables {
		if err := p.scope.Declare(place+".variables["+strconv.Itoa(i)+"].expression", v.Name, v.Expression); err != nil {
			return nil, errors.Join(append(errs, err)...) // later ones may read it
		}
	}
	p.preconditions, err = kyvernocel.CompileConditions(p.scope, conditions, c.rulePath(path)+".celPreconditions")
	errs = append(errs, err, p.compileExpressions(spec.Expressions, place+".expressions"), p.compileAnnotations(spec.AuditAnnotations, place+".auditAnnotations"))
	return p, errors.Join(errs...)
}

// checkFields refuses expressions that read a field that none of the rule's kinds has, or returns
// warnings for them.
func (p *program) checkFields(targets []policy.Target) ([]string, error) {
	programs := slices.Concat(p.scope.Variables(), p.preconditions)
	for i := range p.expressions {
		programs = append(programs, p.expressions[i].holds, p.expressions[i].message)
	}
	for i := range p.annotations {
		programs = append(programs, p.annotations[i].value)
	}
	return p.language.CheckFields(targets, programs...)
}

// CheckFields refuses programs that read a field that none of the kinds of a policy has, or returns
// warnings for them.
func (l *Language) CheckFields(targets []policy.Target, programs ...*cel.Program) ([]string, error) {
	return kyvernocel.FieldCheck{Finder: l.schemas, Unqualified: true}.Check(targets, programs...)
}

func (c compiler) rulePath(validate string) string { return validate[:len(validate)-len(".validate")] }

func (p *program) compileExpressions(docs []celExpression, path string) error {
	if len(docs) == 0 || len(docs) > maxExpressions {
		return field.Fail(path, "want 1 to %d expressions, found %d", maxExpressions, len(docs))
	}
	var errs []error
	for i, doc := range docs {
		e := expression{path: path + "[" + strconv.Itoa(i) + "]", text: doc.Message, source: doc.Expression}
		var reason *meta.StatusReason
		if doc.Reason != "" {
			r := meta.StatusReason(doc.Reason)
			reason = &r
		}
		errs = append(errs, kyvernocel.CheckReason(admission.Validation{Reason: reason, Message: doc.Message}, e.path))
		var err error
		e.holds, err = p.scope.Compile(e.path+".expression", doc.Expression, celgo.BoolType)
		if err == nil {
			err = kyvernocel.ReadsKnown(e.holds)
		}
		errs = append(errs, err)
		if doc.MessageExpression != "" {
			e.message, err = p.scope.Compile(e.path+".messageExpression", doc.MessageExpression, celgo.StringType)
			errs = append(errs, err)
		}
		p.expressions = append(p.expressions, e)
	}
	return errors.Join(errs...)
}

func (p *program) compileAnnotations(docs []auditAnnotation, path string) error {
	if len(docs) > maxExpressions {
		return field.Fail(path, "%d are more than %d", len(docs), maxExpressions)
	}
	var errs []error
	for i, doc := range docs {
		place := path + "[" + strconv.Itoa(i) + "]"
		if doc.Key == "" {
			errs = append(errs, field.Fail(place+".key", "is empty"))
		}
		value, err := p.scope.Compile(place+".valueExpression", doc.ValueExpression, celgo.StringType, celgo.NullType)
		errs = append(errs, err)
		p.annotations = append(p.annotations, annotation{key: doc.Key, value: value})
	}
	return errors.Join(errs...)
}

// check evaluates with each of the parameters, or once without.
func (p *program) check(q *question, data variable.Context) outcome {
	s := q.about.Subject
	variables := kyvernocel.Variables(s, p.template, nil)
	if p.params == nil {
		return p.ask(q, data, variables)
	}
	list, err := p.params.find(q.ctx, p.language.options.Params, s)
	if err != nil {
		return undecided(p.path+".paramRef", err)
	}
	if len(list) == 0 {
		return passed()
	}
	found := make([]outcome, len(list))
	for i, param := range list {
		variables[paramsName] = param
		found[i] = p.ask(q, data, variables)
	}
	return gravest(found)
}

// gravest returns the outcome that decides: each parameter is a rule of its own, so a
// condition that leaves one out leaves out no other.
func gravest(found []outcome) outcome {
	for _, result := range []policy.Result{policy.Fail, policy.Indeterminate, policy.Pass} {
		if i := slices.IndexFunc(found, func(o outcome) bool { return o.result == result }); i >= 0 {
			return found[i]
		}
	}
	return found[0]
}

func (p *program) ask(q *question, data variable.Context, variables map[string]any) outcome {
	o := p.language.options
	activation := p.scope.NewActivation(cel.Inputs{Variables: variables, Now: o.Now, Random: o.Random})
	if len(p.preconditions) > 0 {
		held, err := p.preconditions.Hold(q.ctx, activation)
		switch {
		case err != nil:
			return undecided(q.rule.path+".celPreconditions", err)
		case !held:
			return answered(rule.Skip("cel preconditions not met"))
		}
	}
	found := p.judge(q, data, activation)
	found.annotations = p.words(q.ctx, activation)
	return found
}

// judge evaluates until an expression does not hold. One that cannot be evaluated leaves open
// whether another does not.
func (p *program) judge(q *question, data variable.Context, activation *cel.Activation) outcome {
	var unsure *outcome
	for i := range p.expressions {
		e := &p.expressions[i]
		held, err := e.holds.Bool(q.ctx, activation)
		if err != nil {
			if unsure == nil {
				failed := undecided(e.path, err)
				unsure = &failed
			}
			if q.ctx.Err() != nil {
				break
			}
			continue
		}
		if !held {
			return failed(e.says(q, data, activation))
		}
	}
	if unsure != nil {
		return *unsure
	}
	return passed()
}

// says is the author's message.
func (e *expression) says(q *question, data variable.Context, activation *cel.Activation) string {
	words := kyvernocel.MessageOf(q.ctx, e.message, activation)
	switch {
	case words != "":
		return words
	case e.text != "":
		return e.text
	case q.rule.message.source != "":
		return q.rule.message.text(data)
	}
	return "failed expression: " + e.source
}

// words returns the values of the audit annotations. The value of one that cannot be evaluated is
// the error: annotations decide nothing.
func (p *program) words(ctx context.Context, activation *cel.Activation) map[string]string {
	if len(p.annotations) == 0 {
		return nil
	}
	words := make(map[string]string, len(p.annotations))
	for _, a := range p.annotations {
		value, err := a.value.Eval(ctx, activation)
		if err != nil {
			words[a.key] = "cannot be evaluated: " + kyvernocel.Shorten(err.Error())
			continue
		}
		if text, ok := value.Value().(string); ok && text != "" {
			words[a.key] = kyvernocel.Bounded(text)
		}
	}
	return words
}
