package mutating

import (
	"context"
	"errors"
	"slices"
	"strconv"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/internal/trigger"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/requirement"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/mutation"
)

// alteration is a policy.Alteration: a policy that changes existing objects.
type alteration struct {
	*rule
	selections []policy.Selection
	choice     *choice // nil: the selections are those of every trigger
	conditions kyvernocel.Conditions
	// self: the changed objects are also the triggers.
	self, requester bool
	sorts           trigger.Sorts // of the triggers
	triggers        []policy.Target
	// skipGenerated is spec.evaluation.skipBackgroundRequests.
	skipGenerated bool
}

var _ policy.Alteration = (*alteration)(nil)

// alteration compiles a policy for existing objects: the targets or, without any, the objects
// that it matches itself.
func (b *builder) alteration(r *rule) (*alteration, error) {
	a := &alteration{rule: r, self: b.spec.TargetMatchConstraints == nil, skipGenerated: true}
	if doc := b.spec.EvaluationConfiguration; doc != nil && doc.SkipBackgroundRequests != nil {
		a.skipGenerated = *doc.SkipBackgroundRequests
	}
	const who = "a policy about existing objects"
	var err error
	a.sorts, err = trigger.Read(b.spec.MatchConstraints, who)
	errs := []error{err}
	a.triggers = kyvernocel.Confine(r.match.TargetsOfAll(), b.out.Namespace)
	path, chosen := "spec.matchConstraints", b.spec.MatchConstraints
	if doc := b.spec.TargetMatchConstraints; doc != nil {
		path, chosen = "spec.targetMatchConstraints", &doc.MatchResources
	}
	a.selections, err = b.selections(chosen, path)
	errs = append(errs, err)
	if doc := b.spec.TargetMatchConstraints; doc != nil && doc.Expression != "" {
		a.choice = &choice{among: a.selections, isAny: len(doc.ResourceRules) == 0, namespace: b.out.Namespace}
		a.choice.program, err = compileChoice(r.program.scope, doc.Expression, path+".expression")
		errs = append(errs, err)
	}
	a.conditions, err = kyvernocel.CompileConditions(r.program.scope, b.spec.TargetMatchConditions, "spec.targetMatchConditions")
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	a.requester = kyvernocel.ReadsRequester(slices.Concat(r.program.expressions(), a.conditions, a.chosen())...)
	if a.requester {
		return a, a.sorts.WithoutRequester(who)
	}
	return a, nil
}

// chosen returns the expression that chooses targets, if there is one.
func (a *alteration) chosen() []*cel.Program {
	if a == nil || a.choice == nil {
		return nil
	}
	return []*cel.Program{a.choice.program}
}

// kinds are the kinds of targets that are known; none where an expression chooses any object.
func (a *alteration) kinds() []policy.Selection {
	if a.choice != nil && a.choice.isAny {
		return nil
	}
	return a.selections
}

// selections reads the selected objects, each kind and name of its own.
func (b *builder) selections(doc *admission.MatchResources, path string) ([]policy.Selection, error) {
	var errs []error
	within, err := requirement.Selector(doc.NamespaceSelector)
	if err != nil {
		errs = append(errs, field.Below(path+".namespaceSelector", err))
	}
	if len(doc.ExcludeResourceRules) > 0 {
		errs = append(errs, kyvernocel.Unsupported(path+".excludeResourceRules", "a choice of objects by exclusions"))
	}
	by, err := requirement.Selector(doc.ObjectSelector)
	if err != nil {
		errs = append(errs, field.Below(path+".objectSelector", err))
	}
	confine := func(s *policy.Selection) {
		if doc.ObjectSelector != nil && by != nil && !by.Empty() {
			s.Labels, s.Query = labelled{by}, by.String()
		}
		if doc.NamespaceSelector != nil && within != nil && !within.Empty() {
			s.Namespaces = labelled{within}
		}
	}
	if constraints := b.spec.TargetMatchConstraints; constraints != nil && constraints.Expression != "" && len(doc.ResourceRules) == 0 {
		all := policy.Selection{}
		confine(&all)
		return []policy.Selection{all}, errors.Join(errs...)
	}
	var list []policy.Selection
	var absent []policy.Unserved
	for i := range doc.ResourceRules {
		kinds, unserved, err := b.kindsOf(doc.ResourceRules[i], path+".resourceRules["+strconv.Itoa(i)+"]")
		errs, absent = append(errs, err), append(absent, unserved...)
		for _, kind := range kinds {
			kind.Namespace, kind.Position = b.out.Namespace, len(list)
			confine(&kind)
			list = append(list, kind)
		}
	}
	if b.spec.TargetMatchConstraints != nil { // else they are the triggers', too
		b.out.Unserved = append(b.out.Unserved, absent...)
	}
	if len(list)+len(absent) == 0 || len(list) > kyvernocel.MaxEntries {
		errs = append(errs, field.Fail(path+".resourceRules", "want 1 to %d kinds and names, found %d", kyvernocel.MaxEntries, len(list)))
	}
	return list, errors.Join(errs...)
}

// kindsOf reads a rule for existing objects, for any operation, and returns the resources that
// are not served.
func (b *builder) kindsOf(doc admission.NamedRuleWithOperations, path string) ([]policy.Selection, []policy.Unserved, error) {
	if doc.Scope != nil && *doc.Scope != admission.AllScopes {
		return nil, nil, kyvernocel.Unsupported(path+".scope", "a choice of objects by their scope")
	}
	names := doc.ResourceNames
	doc.Operations, doc.ResourceNames = []admission.OperationType{admission.OperationAll}, nil
	exact := admission.Exact
	one := &admission.MatchResources{ResourceRules: []admission.NamedRuleWithOperations{doc}, MatchPolicy: &exact}
	compiled, err := constraint.Compile(one, path, b.options.Kinds)
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		names = []string{""}
	}
	var list []policy.Selection
	for _, t := range compiled.Kinds() {
		switch {
		case t.Subresource == "ephemeralcontainers" && t.Kind == "Pod":
			continue // follows from pods
		case t.Subresource != "", t.Kind == "*", t.Version == "*":
			return nil, nil, kyvernocel.Unsupported(path,
				"a choice of "+t.Kind+" of version "+t.Version+" and subresource "+strconv.Quote(t.Subresource)+", which is not one kind of objects,")
		case t.Unserved:
			continue
		}
		for _, name := range names {
			list = append(list, policy.Selection{APIVersion: schema.GroupVersion{Group: t.Group, Version: t.Version}.String(), Kind: t.Kind, Name: name})
		}
	}
	return list, compiled.Unserved(), nil
}

// labelled is a selector for package policy.
type labelled struct{ labels.Selector }

// Matches reports whether labels are as they are to be.
func (l labelled) Matches(set map[string]string) bool { return l.Selector.Matches(labels.Set(set)) }

// Targets returns the kinds of triggers.
func (a *alteration) Targets() []policy.Target { return a.triggers }

// Selects reports whether the policy may match a trigger; an indeterminate match counts.
func (a *alteration) Selects(s *policy.Subject) bool {
	if !a.sorts.May(s) {
		return false
	}
	matched, err := a.match.Matches(s)
	return matched || err != nil
}

// NeedsRequester reports whether an expression reads the requester of the trigger.
func (a *alteration) NeedsRequester() bool { return a.requester }

// OnPolicyChange reports whether a new policy applies to existing objects: only if these are the
// changed ones.
func (a *alteration) OnPolicyChange() bool { return a.self }

// SkipGenerated reports whether triggers do not count that a rule made.
func (a *alteration) SkipGenerated() bool { return a.skipGenerated }

// Existing selects the objects that the trigger of a case changes.
func (a *alteration) Existing(ctx context.Context, about policy.Case) policy.Selected {
	s := about.Subject
	if !a.sorts.Is(s) || a.quiet && kyvernocel.AskedAtAdmission(s) {
		return policy.Selected{}
	}
	activation, no := a.ask(ctx, s)
	if no != nil {
		return policy.Selected{Result: no.Result, Reasons: no.Reasons}
	}
	selections := a.selections
	if a.choice != nil {
		var err error
		selections, err = a.choice.choose(ctx, activation)
		if err != nil {
			no := undecided(err, "spec.targetMatchConstraints.expression")
			return policy.Selected{Result: no.Result, Reasons: no.Reasons}
		}
	}
	return policy.Selected{
		Result: policy.Pass, Selections: selections,
		Alter: func(ctx context.Context, by policy.Selection, object map[string]any) policy.Mutated {
			return a.alter(ctx, s, by, object)
		},
	}
}

// alter changes one object. Expressions read it as the object, and the trigger's request.
func (a *alteration) alter(ctx context.Context, trigger *policy.Subject, by policy.Selection, object map[string]any) policy.Mutated {
	own := policy.Subject{}
	own.Namespace, _ = of(object, "metadata", "namespace").(string)
	if own.Namespace == trigger.Namespace {
		own.NamespaceLabels, own.NamespaceKnown = trigger.NamespaceLabels, trigger.NamespaceKnown
	}
	shown := func(object map[string]any) *cel.Activation {
		inputs := a.compiler.options.Inputs(a.namespace)
		inputs.More = &kyvernocel.Seen{Subject: trigger}
		inputs.Variables = map[string]any{
			kyvernocel.ObjectName: object, kyvernocel.OldObjectName: nil, kyvernocel.NamespaceName: kyvernocel.NamespaceObject(&own),
		}
		return a.program.scope.NewActivation(inputs)
	}
	activation := shown(object)
	if no := hold(ctx, a.conditions, activation, "targetMatchConditions"); no != nil {
		return *no
	}
	return a.mutate(ctx, mutation.Target{Kind: schema.FromAPIVersionAndKind(by.APIVersion, by.Kind), Object: object}, activation, shown)
}
