package native

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
	"github.com/quaymaster/quaymaster/policy/internal/parameter"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// binding is a compiled binding with its policy.
type binding struct {
	name       string
	definition *constraint.Constraint // of the policy
	match      *constraint.Constraint // nil: everything
	action     policy.Action
	params     *parameter.Reference // nil for none
	deniesNone bool                 // parameterNotFoundAction is Deny
	targets    []policy.Target
	ignores    bool // failurePolicy is Ignore
	program    *program
}

// bindingDocument is a binding of either kind; that of a mutating policy has no actions.
type bindingDocument struct {
	kyvernocel.Head
	Spec struct {
		PolicyName        string                       `json:"policyName"`
		ParamRef          *admission.ParamRef          `json:"paramRef,omitempty"`
		MatchResources    *admission.MatchResources    `json:"matchResources,omitempty"`
		ValidationActions []admission.ValidationAction `json:"validationActions,omitempty"`
	} `json:"spec"`
}

// bindings compiles the bindings of a policy.
func (b *builder) bindings(kind *admission.ParamKind) ([]*binding, error) {
	if len(b.documents) > maxBindings {
		return nil, fmt.Errorf("the policy has %d bindings, more than %d", len(b.documents), maxBindings)
	}
	if len(b.documents) == 0 {
		if b.options.Unbound {
			return []*binding{b.newBinding(b.out.Name)}, nil
		}
		b.out.Warnings = append(b.out.Warnings, "no "+b.out.Kind+bindingSuffix+" binds the policy, and so it enforces nothing")
		return nil, nil
	}
	var list []*binding
	var errs []error
	for _, text := range b.documents {
		one, err := b.binding(text, kind)
		if err == nil && slices.ContainsFunc(list, func(had *binding) bool { return had.name == one.name }) {
			err = errors.New("there are two bindings of this name")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s%s %s: %w", b.out.Kind, bindingSuffix, one.name, err))
		}
		list = append(list, one)
	}
	return list, errors.Join(errs...)
}

func (b *builder) newBinding(name string) *binding {
	return &binding{
		name: name, definition: b.match, action: policy.Enforce, targets: b.match.TargetsOfAll(), ignores: b.out.FailOpen, program: b.program,
	}
}

// binding compiles one binding. It has its name also with an error.
func (b *builder) binding(text json.RawMessage, kind *admission.ParamKind) (*binding, error) {
	var d bindingDocument
	one := b.newBinding("")
	if _, err := field.Read(text, &d); err != nil {
		return one, err
	}
	meta, err := d.ReadMetadata()
	if err != nil {
		return one, err
	}
	one.name = meta.Name
	warn := func(format string, args ...any) {
		b.out.Warnings = append(b.out.Warnings, "binding "+one.name+": "+fmt.Sprintf(format, args...))
	}
	match, warnings, err := constraint.CompileNative(d.Spec.MatchResources, "spec.matchResources", b.options.Kinds)
	errs := []error{err}
	one.match = match
	for _, warning := range warnings {
		warn("%s", warning)
	}
	if err == nil {
		b.out.Unserved = append(b.out.Unserved, match.Unserved()...)
	}
	switch mutates := b.out.Kind == MutatingKind; {
	case mutates && len(d.Spec.ValidationActions) > 0:
		errs = append(errs, field.Fail("spec.validationActions", "unknown field"))
	case !mutates:
		if len(d.Spec.ValidationActions) == 0 {
			warn("spec.validationActions: is missing, which the API server refuses: it counts as Deny")
		}
		one.action, err = kyvernocel.ActionOf(d.Spec.ValidationActions)
		errs = append(errs, err)
	default:
		errs = append(errs, checkOperations(d.Spec.MatchResources, "spec.matchResources"))
	}
	if ref := d.Spec.ParamRef; ref != nil {
		errs = append(errs, one.compileParams(ref, kind, warn))
	}
	return one, errors.Join(errs...)
}

// compileParams reads paramRef. A policy without paramKind ignores it, as in the API server.
func (b *binding) compileParams(ref *admission.ParamRef, kind *admission.ParamKind, warn func(format string, args ...any)) error {
	if (ref.Name == "") == (ref.Selector == nil) {
		return field.Fail("spec.paramRef", "want one of name and selector")
	}
	b.deniesNone = true
	switch action := ref.ParameterNotFoundAction; {
	case action == nil || *action == "":
		warn("spec.paramRef.parameterNotFoundAction: is missing, which the API server refuses: it counts as Deny")
	case *action == admission.AllowAction:
		b.deniesNone = false
	case *action != admission.DenyAction:
		return field.Fail("spec.paramRef.parameterNotFoundAction", "unknown action %q: want Allow or Deny", *action)
	}
	if kind == nil {
		warn("spec.paramRef: has no effect, because the policy has no spec.paramKind")
		return nil
	}
	b.params = &parameter.Reference{APIVersion: kind.APIVersion, Kind: kind.Kind, Namespace: ref.Namespace, Name: ref.Name}
	if ref.Selector == nil {
		return nil
	}
	selector, err := meta.LabelSelectorAsSelector(ref.Selector)
	if err != nil {
		return field.Below("spec.paramRef.selector", err)
	}
	b.params.Selector = selector
	if len(ref.Selector.MatchExpressions) == 0 {
		b.params.Labels = ref.Selector.MatchLabels // the API server selects them, and fewer are read
	}
	return nil
}

// Name returns the name of the binding.
func (b *binding) Name() string { return b.name }

// Targets returns the kinds that the policy matches.
func (b *binding) Targets() []policy.Target { return b.targets }

// matches reports whether the policy and the binding match a subject. An error means that it is not
// known.
func (b *binding) matches(s *policy.Subject) (bool, error) {
	if s.Bare || s.Kind == "" || isExempt(s.Group, s.Kind) {
		return false, nil
	}
	of := func(c *constraint.Constraint) func() logic.Value {
		return func() logic.Value {
			if c == nil {
				return logic.Is(true)
			}
			matched, err := c.Matches(s)
			if err != nil {
				return logic.Indeterminate(err)
			}
			return logic.Is(matched)
		}
	}
	return logic.All(of(b.definition), of(b.match)).Result()
}

// isExempt reports whether the API server evaluates no policies for a kind: its policies themselves,
// which could not be mended otherwise, and reviews, which evaluations send.
func isExempt(group, kind string) bool {
	switch group {
	case Group:
		return IsPolicy(Group+"/v1", kind) || IsBinding(Group+"/v1", kind)
	case "authentication.k8s.io", "authorization.k8s.io":
		return kind != "TokenRequest"
	}
	return false
}

// inputs returns what the evaluations for a subject read: one for each parameter. The outcome is not
// nil if there are none.
func (b *binding) inputs(ctx context.Context, s *policy.Subject) ([]input, *outcome) {
	if b.params == nil {
		return []input{{subject: s}}, nil
	}
	namespace := s.Namespace
	if s.Group == "" && s.Kind == "Namespace" {
		namespace = s.Name // as in its request
	}
	found, err := b.params.Find(ctx, b.program.options.Outside.Resources, namespace)
	switch {
	case err == nil:
	case errors.Is(err, cel.ErrNotFound):
		found = nil
	default:
		return nil, b.misconfigured(err)
	}
	switch {
	case len(found) == 0 && b.deniesNone:
		return nil, misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
	case len(found) == 0:
		return nil, &outcome{is: skipped, reasons: []policy.Reason{{Message: "there is no parameter, and parameterNotFoundAction is Allow"}}}
	case len(found) > maxParameters:
		return nil, &outcome{is: unknown, reasons: []policy.Reason{{
			Code: policy.TooMuch, Path: "spec.paramRef", Message: fmt.Sprintf("%d parameters are more than %d", len(found), maxParameters),
		}}}
	}
	slices.SortStableFunc(found, func(x, y any) int { return cmp.Compare(placeOf(x), placeOf(y)) })
	list := make([]input, len(found))
	for i, param := range found {
		list[i] = input{subject: s, param: param}
	}
	return list, nil
}

// placeOf returns the namespace and the name of an object.
func placeOf(object any) string {
	content, _ := object.(map[string]any)
	metadata, _ := content["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	return namespace + "/" + name
}

// misconfigured is the outcome of parameters that cannot be found. What a look-up does not answer is
// unknown.
func (b *binding) misconfigured(err error) *outcome {
	switch {
	case errors.Is(err, parameter.ErrNamespace):
		return misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case errors.Is(err, parameter.ErrNoNamespace):
		return misconfigured("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	}
	reasons, isFault := kyvernocel.Reasons(err, "spec.paramRef")
	if !isFault {
		return &outcome{is: unknown, reasons: reasons}
	}
	return misconfigured(strings.TrimSpace(err.Error()))
}

// misconfigured is the outcome that the API server denies whatever the actions of the binding are.
func misconfigured(what string) *outcome {
	return &outcome{is: fault, always: true, reasons: []policy.Reason{{
		Code: policy.PolicyError, Path: "spec.paramRef", Message: "failed to configure binding: " + what,
	}}}
}
