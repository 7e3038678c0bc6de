package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	celgo "github.com/google/cel-go/cel"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// validator is a policy.Validation: a ValidatingAdmissionPolicy for one of its bindings.
type validator struct {
	*binding
	validations []validation
	annotations auditAnnotations
}

var _ policy.Validation = (*validator)(nil)

// validation is one entry of spec.validations.
type validation struct {
	path           string
	holds, message *cel.Program // message is nil for none
	text           string       // of the policy, or made of the expression
	reason         string
}

func (b *builder) validating(spec *admission.ValidatingAdmissionPolicySpec) error {
	err := b.common(definition{
		failure: spec.FailurePolicy, params: spec.ParamKind, match: spec.MatchConstraints, conditions: spec.MatchConditions, variables: spec.Variables,
	})
	if err != nil {
		return err
	}
	var errs [3]error
	validations, err := b.validations(spec.Validations)
	errs[0] = err
	annotations, err := b.annotations(spec.AuditAnnotations)
	errs[1] = err
	if len(spec.Validations)+len(spec.AuditAnnotations) == 0 {
		errs[2] = field.Fail("spec.validations", "is empty, and so are spec.auditAnnotations: the policy would do nothing")
	}
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	bindings, err := b.bindings(spec.ParamKind)
	if err != nil {
		return err
	}
	programs := slices.Concat(b.program.conditions, annotations.Programs())
	for i := range validations {
		programs = append(programs, validations[i].holds, validations[i].message)
	}
	b.checkFields(slices.Concat(programs, b.program.scope.Variables())...)
	kyvernocel.OmitFromScans(b.out, slices.Concat(programs, b.program.scope.Variables())...)
	b.out.AuditOnly = len(bindings) > 0
	for _, each := range bindings {
		b.out.AuditOnly = b.out.AuditOnly && each.action.Admits()
		b.out.Validations = append(b.out.Validations, &validator{binding: each, validations: validations, annotations: annotations})
	}
	return nil
}

func (b *builder) validations(docs []admission.Validation) ([]validation, error) {
	if len(docs) > kyvernocel.MaxEntries {
		return nil, field.Fail("spec.validations", "%d are more than %d", len(docs), kyvernocel.MaxEntries)
	}
	var list []validation
	var errs []error
	for i, doc := range docs {
		path := "spec.validations[" + strconv.Itoa(i) + "]"
		v := validation{
			path: path, text: cmp.Or(strings.TrimSpace(doc.Message), "failed expression: "+strings.TrimSpace(doc.Expression)), reason: "Invalid",
		}
		if doc.Reason != nil {
			v.reason = string(*doc.Reason)
		}
		var err error
		v.holds, err = b.program.scope.Compile(path+".expression", doc.Expression, celgo.BoolType)
		errs = append(errs, err, kyvernocel.CheckReason(doc, path))
		if doc.MessageExpression != "" {
			v.message, err = b.program.scope.Compile(path+".messageExpression", doc.MessageExpression, celgo.StringType)
			if err == nil {
				err = checkMessage(v.message)
			}
			errs = append(errs, err)
		}
		list = append(list, v)
	}
	return list, errors.Join(errs...)
}

// Validate evaluates the policy with each parameter of the binding. Where it is indeterminate whether
// it matches, an object that passes does so either way, and any other is indeterminate.
func (v *validator) Validate(ctx context.Context, about policy.Case) policy.Validated {
	matched, unsure := v.matches(about.Subject)
	if !matched && unsure == nil {
		return policy.Validated{}
	}
	undecided := func() policy.Validated {
		return policy.Validated{Result: policy.Indeterminate, Reasons: kyvernocel.Unmatched(unsure), Action: v.action}
	}
	if policy.IsUnconverted(unsure) {
		return undecided()
	}
	found := v.evaluate(ctx, about.Subject)
	if unsure != nil && found.is != passed && found.is != skipped {
		return undecided()
	}
	return found.validated(v.action, v.ignores)
}

func (v *validator) evaluate(ctx context.Context, s *policy.Subject) outcome {
	inputs, none := v.inputs(ctx, s)
	if none != nil {
		return *none
	}
	all := make([]outcome, len(inputs))
	for i, in := range inputs {
		all[i] = v.judge(ctx, in)
	}
	return first(all, v.ignores)
}

// judge evaluates the policy with one parameter: every validation, as the API server does.
func (v *validator) judge(ctx context.Context, in input) outcome {
	if no := v.program.hold(ctx, in); no != nil {
		return *no
	}
	activation := v.program.activation(in)
	all := []outcome{{is: passed}}
	for i := range v.validations {
		one := &v.validations[i]
		held, err := one.holds.Bool(ctx, activation)
		switch {
		case err != nil:
			all = append(all, v.program.failed(err, one.path, one.holds.Expression()))
		case !held:
			all = append(all, outcome{is: denied, reason: one.reason, reasons: []policy.Reason{{
				Code: policy.Violated, Path: one.path, Message: one.says(ctx, activation),
			}}})
		}
		if ctx.Err() != nil {
			break
		}
	}
	return first(append(all, v.words(ctx, in)), v.ignores)
}

// says is the author's message; one with line breaks is none, as in the API server.
func (v *validation) says(ctx context.Context, activation *cel.Activation) string {
	words := kyvernocel.MessageOf(ctx, v.message, activation)
	if strings.Contains(words, "\n") {
		words = ""
	}
	return cmp.Or(words, v.text)
}

// words evaluates the audit annotations, with a budget of their own. One that fails denies under every
// action, unless failurePolicy is Ignore.
func (v *validator) words(ctx context.Context, in input) outcome {
	values, errs := v.annotations.Words(ctx, v.program.activation(in))
	found := outcome{is: passed, annotations: values}
	for _, err := range errs {
		failed := v.program.failed(err, "spec.auditAnnotations", v.annotations.expressionAt(err))
		switch {
		case failed.is == fault && v.ignores:
			continue // the API server leaves the annotation out
		case found.is == passed || failed.is == fault && found.is != fault:
			found.is, found.reasons, found.always = failed.is, failed.reasons, failed.is == fault
		}
	}
	return found
}

// expressionAt returns the expression of an annotation whose evaluation failed.
func (a auditAnnotations) expressionAt(err error) string {
	evaluated, is := errors.AsType[*cel.EvalError](err)
	for i := range a.docs {
		if is && evaluated.Path == fmt.Sprintf("spec.auditAnnotations[%d].valueExpression", i) {
			return a.docs[i].ValueExpression
		}
	}
	return ""
}
