package validating

import (
	"cmp"
	"context"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// rule is a policy.Validation: a whole policy, for the objects that it matches or for controllers
// of pods.
type rule struct {
	name      string
	program   *program
	compiler  *Compiler
	action    policy.Action
	match     *constraint.Constraint // nil for documents that are no Kubernetes objects
	template  kyvernocel.Template
	namespace string // of the policy
	targets   []policy.Target
	json      bool
	// quiet: no requester of an admission receives the result.
	quiet bool
}

var _ policy.Validation = (*rule)(nil)

// Name returns the rule's name: the policy's, or a generated one.
func (r *rule) Name() string { return r.name }

// Targets returns the kinds that the rule matches.
func (r *rule) Targets() []policy.Target { return r.targets }

// OnlyDocuments reports whether the policy's evaluation.mode is JSON.
func (r *rule) OnlyDocuments() bool { return r.json }

// Validate evaluates the validations in their order. Where it is indeterminate whether the
// policy matches, an object that meets them passes either way, and any other is
// indeterminate.
func (r *rule) Validate(ctx context.Context, about policy.Case) policy.Validated {
	s := about.Subject
	if r.json != (s.Kind == "") || r.quiet && kyvernocel.AskedAtAdmission(s) {
		return policy.Validated{}
	}
	matched, unsure := true, error(nil)
	if r.match != nil {
		matched, unsure = r.match.Matches(s)
	}
	if !matched && unsure == nil {
		return policy.Validated{}
	}
	if policy.IsUnconverted(unsure) {
		return r.undecided(kyvernocel.Unmatched(unsure))
	}
	out := r.evaluate(ctx, about)
	if unsure != nil && out.Result != policy.Pass && out.Result != policy.Skipped {
		return r.undecided(kyvernocel.Unmatched(unsure))
	}
	return out
}

// evaluate evaluates the conditions, and the validations where all conditions hold.
func (r *rule) evaluate(ctx context.Context, about policy.Case) policy.Validated {
	s := about.Subject
	inputs := r.compiler.options.Inputs(r.namespace)
	inputs.More = &kyvernocel.Seen{Subject: s, Template: r.template, Exempt: about.Exempt}
	if len(r.program.conditions) > 0 {
		applies, err := r.program.conditions.Hold(ctx, r.program.conditionScope.NewActivation(inputs))
		if err != nil {
			reasons, _ := kyvernocel.Reasons(err, "spec.matchConditions")
			return r.undecided(reasons)
		}
		if !applies {
			return policy.Validated{Result: policy.Skipped, Reasons: []policy.Reason{{Message: "the policy's matchConditions do not hold"}}}
		}
	}
	activation := r.program.scope.NewActivation(inputs)
	out := r.judge(ctx, activation)
	words, errs := r.program.annotations.Words(ctx, activation)
	if len(errs) > 0 && out.Result == policy.Pass {
		out = r.undecided(kyvernocel.AnnotationReasons(errs))
	}
	out.AuditAnnotations = words
	return out
}

func (r *rule) undecided(reasons []policy.Reason) policy.Validated {
	return policy.Validated{Result: policy.Indeterminate, Reasons: reasons, Action: r.action}
}

// judge asks until a validation does not hold. One that cannot be evaluated leaves open
// whether another does not.
func (r *rule) judge(ctx context.Context, activation *cel.Activation) policy.Validated {
	var unsure []policy.Reason
	for i := range r.program.validations {
		v := &r.program.validations[i]
		held, err := v.holds.Bool(ctx, activation)
		if err != nil {
			reasons, _ := kyvernocel.Reasons(err, v.path)
			unsure = append(unsure, reasons...)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if !held {
			reason := policy.Reason{Code: policy.Violated, Path: v.path, Message: v.says(ctx, activation)}
			if r.json {
				reason.Hint = hint.ChangeDocument // apply evaluates Kubernetes objects alone
			}
			return policy.Validated{Result: policy.Fail, Action: r.action, Reasons: []policy.Reason{reason}}
		}
	}
	if len(unsure) > 0 {
		return r.undecided(unsure)
	}
	return policy.Validated{Result: policy.Pass, Action: r.action}
}

// says is the author's message.
func (v *validation) says(ctx context.Context, activation *cel.Activation) string {
	return cmp.Or(kyvernocel.MessageOf(ctx, v.words, activation), v.message)
}
