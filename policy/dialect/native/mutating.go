package native

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/mutation"
	"github.com/quaymaster/quaymaster/policy/lang/cel/patchtype"
)

// mutator is a policy.Mutation: a MutatingAdmissionPolicy for one of its bindings.
type mutator struct {
	*binding
	changes   []change
	reinvoked bool
}

var _ policy.Mutation = (*mutator)(nil)

// change is one entry of spec.mutations: the expression, and the way in which its result changes an
// object.
type change struct {
	makes *cel.Program
	apply func(made ref.Val, about mutation.Target) (map[string]any, error)
}

func (b *builder) mutating(spec *admission.MutatingAdmissionPolicySpec) error {
	err := b.common(definition{
		failure: spec.FailurePolicy, params: spec.ParamKind, match: spec.MatchConstraints, conditions: spec.MatchConditions, variables: spec.Variables,
		patches: true,
	})
	if err != nil {
		return err
	}
	errs := []error{checkOperations(spec.MatchConstraints, "spec.matchConstraints")}
	changes, err := b.changes(spec.Mutations)
	errs = append(errs, err)
	switch spec.ReinvocationPolicy {
	case "", admission.NeverReinvocationPolicy, admission.IfNeededReinvocationPolicy:
	default:
		errs = append(errs, field.Fail("spec.reinvocationPolicy", "unknown value %q: want Never or IfNeeded", spec.ReinvocationPolicy))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	bindings, err := b.bindings(spec.ParamKind)
	if err != nil {
		return err
	}
	programs := slices.Concat(b.program.conditions, b.program.scope.Variables())
	for i := range changes {
		programs = append(programs, changes[i].makes)
	}
	b.checkFields(programs...)
	kyvernocel.OmitFromScans(b.out, programs...)
	for _, each := range bindings {
		b.out.Mutations = append(b.out.Mutations, &mutator{each, changes, spec.ReinvocationPolicy == admission.IfNeededReinvocationPolicy})
	}
	return nil
}

// checkOperations refuses operations that leave nothing to change, as the API server does.
func checkOperations(doc *admission.MatchResources, path string) error {
	if doc == nil {
		return nil
	}
	var errs []error
	for i, r := range doc.ResourceRules {
		for n, o := range r.Operations {
			if o != admission.Create && o != admission.Update {
				errs = append(errs, field.Fail(path+".resourceRules["+strconv.Itoa(i)+"].operations["+strconv.Itoa(n)+"]",
					"%s: a mutation is about CREATE and UPDATE alone", o))
			}
		}
	}
	return errors.Join(errs...)
}

func (b *builder) changes(docs []admission.Mutation) ([]change, error) {
	if n := len(docs); n == 0 || n > kyvernocel.MaxEntries {
		return nil, field.Fail("spec.mutations", "want 1 to %d, found %d", kyvernocel.MaxEntries, n)
	}
	var list []change
	var errs []error
	for i := range docs {
		one, err := b.change(&docs[i], "spec.mutations["+strconv.Itoa(i)+"]")
		errs = append(errs, err)
		list = append(list, one)
	}
	return list, errors.Join(errs...)
}

func (b *builder) change(doc *admission.Mutation, path string) (c change, err error) {
	switch doc.PatchType {
	case admission.PatchTypeApplyConfiguration:
		if doc.ApplyConfiguration == nil || doc.JSONPatch != nil {
			return c, field.Fail(path, "want applyConfiguration and nothing else, for patchType ApplyConfiguration")
		}
		types := b.types()
		c.apply = func(made ref.Val, about mutation.Target) (map[string]any, error) {
			return types.Apply(made, about, false)
		}
		c.makes, err = b.program.scope.Compile(path+".applyConfiguration.expression", doc.ApplyConfiguration.Expression, patchtype.ObjectType())
	case admission.PatchTypeJSONPatch:
		if doc.JSONPatch == nil || doc.ApplyConfiguration != nil {
			return c, field.Fail(path, "want jsonPatch and nothing else, for patchType JSONPatch")
		}
		c.apply = mutation.PatchAsServer
		c.makes, err = b.program.scope.Compile(path+".jsonPatch.expression", doc.JSONPatch.Expression, celgo.ListType(patchtype.PatchType()))
	default:
		return c, field.Fail(path+".patchType", "unknown value %q: want ApplyConfiguration or JSONPatch", doc.PatchType)
	}
	return c, err
}

// wordsOf is the API server's message about a mutation that cannot be made.
func wordsOf(err error) string {
	if e, is := errors.AsType[*mutation.AtomicError](err); is {
		return "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: " + strings.Join(e.Paths, ", ")
	}
	if e, is := errors.AsType[*patchtype.NameError](err); is {
		return fmt.Sprintf("type mismatch: unexpected type name %q, expected %q, which matches field name path from root Object type", e.Found, e.Expected)
	}
	if e, is := errors.AsType[*mutation.FitError](err); is {
		return fmt.Sprintf("error applying patch: failed to convert patch object to typed object: %v", e.Err)
	}
	return err.Error()
}

// Reinvoke reports whether reinvocationPolicy is IfNeeded.
func (m *mutator) Reinvoke() bool { return m.reinvoked }

// Mutate makes the mutations with each parameter of the binding, each on the object as the previous ones
// left it. Where it is indeterminate whether the policy matches, an object that they do not change is
// the same either way, and for any other the result is indeterminate.
func (m *mutator) Mutate(ctx context.Context, about policy.Case) policy.Mutated {
	s := about.Subject
	if s.Object.IsZero() {
		return policy.Mutated{}
	}
	matched, unsure := m.matches(s)
	if !matched && unsure == nil {
		return policy.Mutated{}
	}
	undecided := policy.Mutated{Result: policy.Indeterminate}
	if unsure != nil {
		undecided.Reasons = kyvernocel.Unmatched(unsure)
	}
	if policy.IsUnconverted(unsure) {
		return undecided
	}
	out := m.evaluate(ctx, s)
	if unsure != nil && out.Result != policy.Skipped && (out.Result != policy.Pass || out.Object != nil) {
		return undecided
	}
	return out
}

func (m *mutator) evaluate(ctx context.Context, s *policy.Subject) policy.Mutated {
	inputs, none := m.inputs(ctx, s)
	if none != nil {
		return m.mutated([]outcome{*none}, nil)
	}
	now := *s
	var all []outcome
	for _, in := range inputs {
		in.subject = &now
		if no := m.program.hold(ctx, in); no != nil {
			all = append(all, *no)
			continue
		}
		all = append(all, outcome{is: passed})
		for i := range m.changes {
			after, failed := m.make(ctx, &m.changes[i], in)
			if failed != nil {
				all = append(all, *failed)
				continue
			}
			changed := now
			changed.Object = policy.ContentOf(after)
			now = changed
		}
	}
	if reflect.DeepEqual(now.Object.Map(), s.Object.Map()) {
		return m.mutated(all, nil)
	}
	return m.mutated(all, now.Object.Map())
}

// make returns the object of an input after one mutation.
func (m *mutator) make(ctx context.Context, c *change, in input) (map[string]any, *outcome) {
	made, err := c.makes.Eval(ctx, m.program.activation(in))
	if err != nil {
		failed := m.program.failed(err, c.makes.Path(), c.makes.Expression())
		return nil, &failed
	}
	object := in.subject.Object.Map()
	after, err := c.apply(made, mutation.Target{Kind: mutation.KindOf(in.subject), Object: object})
	if err == nil {
		err = mutation.CheckIdentity(object, after)
	}
	if err != nil {
		return nil, &outcome{is: fault, reasons: []policy.Reason{{
			Code: policy.PolicyError, Path: c.makes.Path(), Message: wordsOf(err),
		}}}
	}
	return after, nil
}

// mutated is the result of a rule. Faults that failurePolicy ignores leave the other mutations, as in
// the API server, and are told.
func (m *mutator) mutated(all []outcome, object map[string]any) policy.Mutated {
	switch found := first(all, m.ignores); found.is {
	case skipped:
		return policy.Mutated{Result: policy.Skipped, Reasons: found.reasons}
	case passed:
		return policy.Mutated{Result: policy.Pass, Object: object}
	case fault:
		if m.ignores {
			return policy.Mutated{Result: policy.Pass, Object: object, Reasons: found.reasons}
		}
		return policy.Mutated{Result: policy.Indeterminate, Reasons: found.reasons}
	default:
		return policy.Mutated{Result: policy.Indeterminate, Reasons: found.reasons}
	}
}
