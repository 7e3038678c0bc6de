package native

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/authorizer"
)

// program is the compiled expressions that both kinds of policies have. The bindings share it.
type program struct {
	// conditionScope has no variables of the policy, as in the API server.
	conditionScope, scope *cel.Scope
	conditions            kyvernocel.Conditions
	// variables are the names of the variables, by the paths of their expressions.
	variables map[string]string
	options   kyvernocel.Options
	params    bool
}

func (b *builder) newProgram(d definition) (*program, error) {
	p := &program{variables: map[string]string{}, options: b.options.Options, params: d.params != nil}
	language := b.language[environment{params: p.params, patches: d.patches}]
	var err error
	p.conditionScope, err = kyvernocel.NewScope(language)
	if err != nil {
		return nil, err
	}
	p.scope, err = kyvernocel.NewScope(language)
	if err != nil {
		return nil, err
	}
	var errs [2]error
	p.conditions, errs[0] = kyvernocel.CompileWebhookConditions(p.conditionScope, d.conditions, "spec.matchConditions")
	errs[1] = kyvernocel.Declare(p.scope, d.variables)
	for i, v := range d.variables {
		p.variables["spec.variables["+strconv.Itoa(i)+"].expression"] = v.Name
	}
	return p, errors.Join(errs[:]...)
}

// input is what the expressions of one evaluation read.
type input struct {
	subject *policy.Subject
	param   any // nil for none
}

// conditionsOf returns what conditions read: they have no namespaceObject.
func (p *program) conditionsOf(in input) *cel.Activation {
	inputs := p.inputs(in)
	inputs.Variables[kyvernocel.NamespaceName] = nil
	return p.conditionScope.NewActivation(inputs)
}

func (p *program) activation(in input) *cel.Activation { return p.scope.NewActivation(p.inputs(in)) }

func (p *program) inputs(in input) cel.Inputs {
	inputs := p.options.Inputs("")
	inputs.More = &kyvernocel.Seen{Subject: in.subject, Kubernetes: true}
	inputs.Variables = map[string]any{}
	if p.params {
		inputs.Variables[paramsName] = in.param
	}
	return inputs
}

// hold evaluates the conditions. The outcome is nil if all of them hold.
func (p *program) hold(ctx context.Context, in input) *outcome {
	if len(p.conditions) == 0 {
		return nil
	}
	holds, err := p.conditions.Hold(ctx, p.conditionsOf(in))
	switch {
	case err != nil:
		failed := p.failed(err, "spec.matchConditions", "")
		return &failed
	case !holds:
		return &outcome{is: skipped, reasons: []policy.Reason{{Message: "the policy's matchConditions do not hold"}}}
	}
	return nil
}

// failed is the outcome of an expression without a value, as the API server words it. Of matchConditions
// the error has the expression's path.
func (p *program) failed(err error, path, expression string) outcome {
	if evaluated, is := errors.AsType[*cel.EvalError](err); is && expression == "" {
		expression = p.conditionAt(evaluated.Path)
	}
	reasons, isFault := kyvernocel.Reasons(err, path)
	if !isFault {
		return outcome{is: unknown, reasons: reasons}
	}
	return outcome{is: fault, reasons: []policy.Reason{{
		Code: policy.PolicyError, Path: path, Message: p.words(err, expression), Hint: hint.CorrectExpression,
	}}}
}

func (p *program) conditionAt(path string) string {
	for _, c := range p.conditions {
		if c.Path() == path {
			return c.Expression()
		}
	}
	return ""
}

// words is the API server's message about a failed evaluation.
func (p *program) words(err error, expression string) string {
	if exceeded, is := errors.AsType[*cel.BudgetError](err); is {
		if strings.Contains(exceeded.What, "all expressions") {
			return "validation failed due to running out of cost budget, no further validation rules will be run"
		}
		return fmt.Sprintf("expression '%s' resulted in error: operation cancelled: actual cost limit exceeded", expression)
	}
	cause := err
	if outer, is := errors.AsType[*cel.EvalError](err); is {
		cause = outer.Err
	}
	if of, is := errors.AsType[*cel.EvalError](cause); is {
		return fmt.Sprintf("expression '%s' resulted in error: composited variable %q fails to evaluate: %v", expression, p.variables[of.Path], of.Err)
	}
	return fmt.Sprintf("expression '%s' resulted in error: %v", expression, cause)
}

// auditAnnotations are compiled spec.auditAnnotations.
type auditAnnotations struct {
	kyvernocel.Annotations
	docs []admission.AuditAnnotation
}

func (b *builder) annotations(docs []admission.AuditAnnotation) (auditAnnotations, error) {
	if len(docs) > maxAnnotations {
		return auditAnnotations{}, field.Fail("spec.auditAnnotations", "%d are more than %d", len(docs), maxAnnotations)
	}
	compiled, err := kyvernocel.CompileAnnotations(b.program.scope, docs)
	return auditAnnotations{compiled, docs}, err
}

// checkMessage refuses a message that reads the authorizer, which the API server does not declare for
// one.
func checkMessage(p *cel.Program) error {
	if slices.ContainsFunc(p.Reads(), func(r cel.Read) bool { return r.Variable == authorizer.Name || r.Variable == authorizer.ResourceName }) {
		return field.Fail(p.Path(), "undeclared reference to 'authorizer'")
	}
	return nil
}

// merged adds the annotations of another parameter: distinct values of a key are in one list.
func merged(into, more map[string]string) map[string]string {
	if into == nil {
		return more
	}
	into = maps.Clone(into)
	for key, value := range more {
		switch had := into[key]; {
		case had == "":
			into[key] = value
		case !slices.Contains(strings.Split(had, ", "), value):
			into[key] = had + ", " + value
		}
	}
	return into
}
