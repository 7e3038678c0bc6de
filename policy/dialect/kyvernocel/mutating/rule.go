package mutating

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/mutation"
)

// rule is a policy.Mutation: a whole policy, for the objects that it matches or for controllers
// of pods.
type rule struct {
	name      string
	program   *program
	compiler  *Compiler
	match     *constraint.Constraint
	template  kyvernocel.Template
	namespace string // of the policy
	targets   []policy.Target
	// quiet: no requester of an admission receives the result.
	quiet bool
}

var _ policy.Mutation = (*rule)(nil)

// Name returns the rule's name: the policy's, or a generated one.
func (r *rule) Name() string { return r.name }

// Targets returns the kinds that the rule matches.
func (r *rule) Targets() []policy.Target { return r.targets }

// Mutate makes the mutations in their order. Where it is indeterminate whether the policy
// matches, an object that they do not change is the same either way, and for any other the
// result is indeterminate.
func (r *rule) Mutate(ctx context.Context, about policy.Case) policy.Mutated {
	s := about.Subject
	if !r.concerns(s) {
		return policy.Mutated{}
	}
	matched, unsure := r.match.Matches(s)
	if !matched && unsure == nil {
		return policy.Mutated{}
	}
	if policy.IsUnconverted(unsure) {
		return unmatched(unsure)
	}
	out := r.evaluate(ctx, about)
	if unsure != nil && out.Result != policy.Skipped && (out.Result != policy.Pass || out.Object != nil) {
		return unmatched(unsure)
	}
	return out
}

func unmatched(err error) policy.Mutated {
	return policy.Mutated{Result: policy.Indeterminate, Reasons: kyvernocel.Unmatched(err)}
}

// concerns reports whether the rule evaluates subjects of this sort at all.
func (r *rule) concerns(s *policy.Subject) bool {
	return s.Kind != "" && !s.Object.IsZero() && (!r.quiet || !kyvernocel.AskedAtAdmission(s))
}

// evaluate makes the mutations where all conditions hold.
func (r *rule) evaluate(ctx context.Context, about policy.Case) policy.Mutated {
	s := about.Subject
	activation := r.activation(s, about.Exempt)
	if no := hold(ctx, r.program.conditions, activation, "matchConditions"); no != nil {
		return *no
	}
	return r.mutate(ctx, mutation.Target{Kind: mutation.KindOf(s), Object: s.Object.Map()}, activation,
		func(object map[string]any) *cel.Activation {
			now := *s
			now.Object = policy.ContentOf(object)
			return r.activation(&now, about.Exempt)
		})
}

// ask evaluates whether the rule matches a subject. The answer is nil if it does, and then the
// activation holds the data for its expressions.
func (r *rule) ask(ctx context.Context, s *policy.Subject) (*cel.Activation, *policy.Mutated) {
	matched, err := r.match.Matches(s)
	if err != nil {
		no := unmatched(err)
		return nil, &no
	}
	if !matched {
		return nil, &policy.Mutated{}
	}
	activation := r.activation(s, nil)
	return activation, hold(ctx, r.program.conditions, activation, "matchConditions")
}

// hold returns the answer if conditions do not hold or are indeterminate.
func hold(ctx context.Context, conditions kyvernocel.Conditions, activation *cel.Activation, name string) *policy.Mutated {
	applies, err := conditions.Hold(ctx, activation)
	if err != nil {
		return undecided(err, "spec."+name)
	}
	if !applies {
		return &policy.Mutated{Result: policy.Skipped, Reasons: []policy.Reason{{Message: "the policy's " + name + " do not hold"}}}
	}
	return nil
}

// activation holds the subject data for expressions.
func (r *rule) activation(s *policy.Subject, exempt []policy.PodSecurityExemption) *cel.Activation {
	inputs := r.compiler.options.Inputs(r.namespace)
	inputs.More = &kyvernocel.Seen{Subject: s, Template: r.template, Exempt: exempt}
	return r.program.scope.NewActivation(inputs)
}

func undecided(err error, path string) *policy.Mutated {
	reasons, _ := kyvernocel.Reasons(err, path)
	return &policy.Mutated{Result: policy.Indeterminate, Reasons: reasons}
}

// mutate applies each mutation to the result of the previous ones. Its expressions read the
// activation, and then the object that shown returns.
func (r *rule) mutate(ctx context.Context, about mutation.Target, activation *cel.Activation, shown func(map[string]any) *cel.Activation) policy.Mutated {
	now, changes := about, 0
	for i := range r.program.mutations {
		m := &r.program.mutations[i]
		made, err := m.makes.Eval(ctx, activation)
		if err != nil {
			return *undecided(err, m.makes.Path())
		}
		after, err := r.change(now, func(t mutation.Target) (map[string]any, error) { return m.apply(made, t) })
		if err != nil {
			return policy.Mutated{Result: policy.Indeterminate, Reasons: []policy.Reason{{
				Code: policy.PolicyError, Path: m.makes.Path(), Message: "the mutation cannot be made: " + err.Error(),
			}}}
		}
		if !mutation.Same(now.Object, after) {
			now.Object = after
			changes++
			activation = shown(after)
		}
	}
	words, errs := r.program.annotations.Words(ctx, activation)
	if len(errs) > 0 {
		return policy.Mutated{Result: policy.Indeterminate, Reasons: kyvernocel.AnnotationReasons(errs), Properties: words}
	}
	out := policy.Mutated{Result: policy.Pass, Properties: words}
	if changes == 1 || changes > 1 && !mutation.Same(now.Object, about.Object) {
		out.Object = now.Object
	}
	return out
}

// change makes a change to an object, or to its pod template as if it were a pod.
func (r *rule) change(about mutation.Target, does func(mutation.Target) (map[string]any, error)) (map[string]any, error) {
	object := about.Object
	var changed map[string]any
	var err error
	if len(r.template) == 0 {
		changed, err = does(about)
	} else {
		changed, err = inTemplate(object, r.template, does)
	}
	if err != nil {
		return nil, err
	}
	if err := mutation.CheckIdentity(object, changed); err != nil {
		return nil, err
	}
	return changed, nil
}

func of(value any, path ...string) any {
	for _, key := range path {
		members, _ := value.(map[string]any)
		value = members[key]
	}
	return value
}

// inTemplate makes a change to the pod that a template is for.
func inTemplate(object map[string]any, t kyvernocel.Template, does func(mutation.Target) (map[string]any, error)) (map[string]any, error) {
	template, ok := of(object, t...).(map[string]any)
	if !ok {
		return object, nil // the API server refuses it
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	pod := map[string]any{"apiVersion": kind.Version, "kind": kind.Kind}
	for _, part := range []string{"metadata", "spec"} {
		if value, ok := template[part]; ok {
			pod[part] = value
		}
	}
	changed, err := does(mutation.Target{Kind: kind, Object: pod})
	if err != nil {
		return nil, err
	}
	after := maps.Clone(template)
	for key, value := range changed {
		switch key {
		case "metadata", "spec":
			after[key] = value
		case "apiVersion", "kind":
		default:
			return nil, errors.New("it changes " + key + ", which a pod template does not have")
		}
	}
	for _, part := range []string{"metadata", "spec"} {
		if _, ok := changed[part]; !ok {
			delete(after, part)
		}
	}
	return within(object, t, after), nil
}

// within returns the object with another value at a place.
func within(object map[string]any, path []string, value any) map[string]any {
	changed := maps.Clone(object)
	if len(path) == 1 {
		changed[path[0]] = value
		return changed
	}
	below, _ := object[path[0]].(map[string]any)
	changed[path[0]] = within(below, path[1:], value)
	return changed
}
