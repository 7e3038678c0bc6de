package generating

import (
	"context"
	"errors"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/internal/trigger"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/source"
)

// generation is a policy.Generation: a whole policy.
type generation struct {
	name, namespace string // of the policy
	compiler        *Compiler
	match           *constraint.Constraint
	sorts           trigger.Sorts
	triggers        []policy.Target
	terms           policy.Terms
	guard           source.Guard
	requester       bool
	scope           *cel.Scope
	conditions      kyvernocel.Conditions
	entries         []entry
	annotations     kyvernocel.Annotations
}

var _ policy.Generation = (*generation)(nil)

// entry is one entry of generate: an expression or a template.
type entry struct {
	path       string
	expression *cel.Program
	template   *template
}

// programs are the expressions, without the variables.
func (g *generation) programs() []*cel.Program {
	list := append(append([]*cel.Program{}, g.conditions...), g.annotations.Programs()...)
	for _, one := range g.entries {
		if one.expression != nil {
			list = append(list, one.expression)
		}
		list = append(list, one.template.programs()...)
	}
	return list
}

// Name returns the name of the policy.
func (g *generation) Name() string { return g.name }

// Targets returns the kinds of triggers.
func (g *generation) Targets() []policy.Target { return g.triggers }

// Terms returns the lifetime settings of the objects.
func (g *generation) Terms() policy.Terms { return g.terms }

// NeedsRequester reports whether an expression reads the requester of the trigger.
func (g *generation) NeedsRequester() bool { return g.requester }

// Selects reports whether the policy may match a trigger; an indeterminate match counts.
func (g *generation) Selects(s *policy.Subject) bool {
	if !g.sorts.May(s) {
		return false
	}
	matched, err := g.match.Matches(s)
	return matched || err != nil
}

// Generate returns the objects that the object of a case requires.
func (g *generation) Generate(ctx context.Context, about policy.Case) policy.Generated {
	if !g.sorts.Is(about.Subject) {
		return policy.Generated{}
	}
	matched, err := g.match.Matches(about.Subject)
	switch {
	case err != nil:
		return policy.Generated{Result: policy.Indeterminate, Reasons: kyvernocel.Unmatched(err)}
	case !matched:
		return policy.Generated{}
	}
	p := newProduction(g, about.Sources)
	activation := g.activation(about.Subject, p)
	applies, err := g.conditions.Hold(ctx, activation)
	switch {
	case err != nil:
		return p.undecided(err, "spec.matchConditions")
	case !applies:
		return policy.Generated{Result: policy.Skipped, Reasons: []policy.Reason{{Message: "the policy's matchConditions do not hold"}}, Read: p.read(false)}
	}
	isMissing := false
	for _, one := range g.entries {
		err := one.make(ctx, activation, p)
		if errors.Is(err, source.ErrMissing) {
			isMissing = true // the objects of the other entries are there
			continue
		}
		if err != nil {
			return p.undecided(err, one.path)
		}
	}
	words, errs := g.annotations.Words(ctx, activation)
	if len(errs) > 0 {
		return policy.Generated{Result: policy.Indeterminate, Reasons: kyvernocel.AnnotationReasons(errs), Read: p.read(false), Properties: words}
	}
	return policy.Generated{Result: policy.Pass, Objects: p.objects, Read: p.read(isMissing), Properties: words}
}

// activation holds the data for expressions.
func (g *generation) activation(s *policy.Subject, p *production) *cel.Activation {
	inputs := g.compiler.options.Inputs(g.namespace)
	inputs.More = &kyvernocel.Seen{Subject: s}
	inputs.Functions = map[string]cel.Call{applyName: p.apply, lowerApplyName: p.apply}
	p.outside = inputs.Outside.Resources
	inputs.Outside.Resources = p
	return g.scope.NewActivation(inputs)
}

// make makes the objects of an entry.
func (e entry) make(ctx context.Context, activation *cel.Activation, p *production) error {
	if e.template != nil {
		return e.template.make(ctx, activation, p)
	}
	_, err := e.expression.Eval(ctx, activation)
	return err
}
