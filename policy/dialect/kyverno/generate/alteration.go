package generate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/mutate"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// alteration is a compiled mutate rule with targets.
type alteration struct {
	triggers
	onPolicyChange bool
	selectors      []selector
	changes        mutate.Changes
}

var _ policy.Alteration = (*alteration)(nil)

// selector finds existing objects.
type selector struct {
	path            string
	kind            policy.ObjectKind
	name, namespace *variable.Template // nil means any
	labels          *variable.Template // nil means any
	values          rulecontext.Entries
	preconditions   *condition.Conditions
}

// CompileTargets compiles a rule with `mutate` that has targets, which is given as
// decoded JSON. The namespace of the options is the policy's own, empty for a
// ClusterPolicy. Errors are about fields.
func CompileTargets(o rulecontext.Options, s Settings, r Rule, does any) (policy.Alteration, error) {
	path := r.Path + ".mutate"
	var doc alterDocument
	if err := decode(does, &doc, path); err != nil {
		return nil, err
	}
	a := &alteration{onPolicyChange: s.OnPolicyUpdate}
	if doc.OnPolicyUpdate != nil {
		a.onPolicyChange = *doc.OnPolicyUpdate
	}
	var err error
	a.triggers, err = compileTriggers(o, r, does)
	if err != nil {
		return nil, err
	}
	var errs []error
	if len(doc.Targets) == 0 || len(doc.Targets) > maxTargets {
		errs = append(errs, field.Fail(path+".targets", "want 1 to %d targets, found %d", maxTargets, len(doc.Targets)))
	}
	known := append(a.Entries(), "target")
	for i, target := range doc.Targets {
		compiled, err := compileSelector(o, target, path+".targets["+strconv.Itoa(i)+"]", a.Entries())
		errs = append(errs, err)
		a.selectors, known = append(a.selectors, compiled), append(known, compiled.values.Names()...)
	}
	raw, err := json.Marshal(does)
	if err != nil {
		return nil, field.Below(path, err)
	}
	a.changes, err = mutate.CompileChanges(o, raw, path, known)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return a, nil
}

// compileSelector reads a target. Known are the names of the rule's context, which alone select it.
func compileSelector(o rulecontext.Options, doc targetDocument, path string, known []string) (selector, error) {
	s := selector{path: path, kind: policy.ObjectKind{APIVersion: doc.APIVersion, Kind: doc.Kind}}
	errs := []error{plainKind(doc.APIVersion, doc.Kind, path), doc.Selector.Validate(path + ".selector"), undefinedNames(doc.Name, doc.Namespace, path, known)}
	template := func(value any, name string) *variable.Template {
		t, err := variable.Compile(o.Engine, value)
		errs = append(errs, field.Below(path+"."+name, err))
		return t
	}
	if doc.Name != "" {
		s.name = template(doc.Name, "name")
	}
	if o.Namespace != "" && doc.Namespace == "" {
		doc.Namespace = o.Namespace // as in Kyverno: a Policy looks nowhere else
	}
	if o.Namespace != "" && !containsVariable(doc.Namespace) && doc.Namespace != o.Namespace {
		errs = append(errs, foreign(path+".namespace", o.Namespace, "change objects of", doc.Namespace))
	}
	errs = append(errs, checkTarget(doc, path))
	if doc.Namespace != "" {
		s.namespace = template(doc.Namespace, "namespace")
	}
	if doc.Selector != nil {
		plain, err := document.Plain(doc.Selector)
		errs = append(errs, field.Below(path+".selector", err), rulecontext.Undefined(plain, path+".selector", known))
		s.labels = template(plain, "selector")
	}
	var err error
	known = append(slices.Clone(known), "target")
	s.values, err = rulecontext.Compile(o, doc.Context, path+".context", known...)
	errs = append(errs, err)
	s.preconditions, err = rule.Preconditions(condition.CompileExempting, o, doc.Preconditions, path+".preconditions", append(known, s.values.Names()...)...)
	return s, errors.Join(append(errs, err)...)
}

// OnPolicyChange reports whether existing triggers count when the policy is added.
func (a *alteration) OnPolicyChange() bool { return a.onPolicyChange }

// SkipGenerated reports whether triggers do not count that a rule made.
func (a *alteration) SkipGenerated() bool { return a.skipGenerated }

// Existing selects the objects that the trigger of a case changes.
func (a *alteration) Existing(ctx context.Context, about policy.Case) policy.Selected {
	data, no := a.ask(ctx, about)
	selected := policy.Selected{Result: policy.Pass, Properties: a.Properties().In(data)}
	if no != nil {
		selected.Result, selected.Reasons = no.Result, no.Reasons
		return selected
	}
	for i := range a.selectors {
		s, err := a.selectors[i].selection(data, i, a.own)
		if err != nil {
			no = rule.Undecided(err)
			return policy.Selected{Result: no.Result, Reasons: no.Reasons, Properties: selected.Properties}
		}
		selected.Selections = append(selected.Selections, s)
	}
	selected.Alter = func(ctx context.Context, by policy.Selection, target map[string]any) policy.Mutated {
		return a.alter(ctx, data, by, target)
	}
	return selected
}

func (s *selector) selection(data variable.Context, position int, own string) (policy.Selection, error) {
	out := policy.Selection{APIVersion: s.kind.APIVersion, Kind: s.kind.Kind, Position: position}
	var err error
	if s.name != nil {
		out.Name, err = text(s.name, data, s.path+".name")
		if err == nil && out.Name == "" {
			err = field.Fail(s.path+".name", "is empty once its variables are filled in, and would mean every object")
		}
		if err != nil {
			return out, err
		}
	}
	if s.namespace != nil {
		out.Namespace, err = text(s.namespace, data, s.path+".namespace")
		if err == nil && out.Namespace == "" {
			err = field.Fail(s.path+".namespace", "is empty once its variables are filled in, and would mean every namespace")
		}
		if err != nil {
			return out, err
		}
	}
	if err := errors.Join(s.spelled("name", s.name, out.Name), s.spelled("namespace", s.namespace, out.Namespace)); err != nil {
		return out, err
	}
	if own != "" && out.Namespace != own {
		return out, foreign(s.path+".namespace", own, "change objects of", out.Namespace)
	}
	if s.labels == nil {
		return out, nil
	}
	filled, err := s.labels.Execute(data)
	if err != nil {
		return out, field.Below(s.path+".selector", err)
	}
	var labels match.Selector
	if err := decode(filled, &labels, s.path+".selector"); err != nil {
		return out, err
	}
	if err := labels.Validate(s.path + ".selector"); err != nil {
		return out, err
	}
	if !s.labels.Plain() {
		for key, value := range labels.MatchLabels {
			if wildcard.Contains(key) || wildcard.Contains(value) {
				return out, field.Fail(s.path+".selector",
					"%s=%s has a wildcard beside variables, and the trigger may have brought it: write a selector without one", key, value)
			}
		}
	}
	out.Labels, out.Query = &labels, query(&labels)
	return out, nil
}

// spelled refuses a wildcard that comes from the trigger and not from the policy: otherwise the
// author of an annotation could change every object.
func (s *selector) spelled(name string, t *variable.Template, value string) error {
	if t == nil || t.Plain() {
		return nil
	}
	written := t.Outside()
	for _, mark := range []string{"*", "?"} {
		if strings.Count(value, mark) > strings.Count(written, mark) {
			return field.Fail(s.path+"."+name, "%q has a %s that a variable brought, and only the policy may write wildcards", value, mark)
		}
	}
	return nil
}

// query returns the part of a selector that the API server supports; it does not support
// wildcards.
func query(s *match.Selector) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if value := s.MatchLabels[key]; !wildcard.Contains(key) && !wildcard.Contains(value) {
			parts = append(parts, key+"="+value)
		}
	}
	for _, e := range s.MatchExpressions {
		switch e.Operator {
		case "In":
			parts = append(parts, e.Key+" in ("+strings.Join(e.Values, ",")+")")
		case "NotIn":
			parts = append(parts, e.Key+" notin ("+strings.Join(e.Values, ",")+")")
		case "Exists":
			parts = append(parts, e.Key)
		case "DoesNotExist":
			parts = append(parts, "!"+e.Key)
		}
	}
	return strings.Join(parts, ",")
}

// alter returns the changed form of one object.
func (a *alteration) alter(ctx context.Context, data variable.Context, by policy.Selection, target map[string]any) policy.Mutated {
	if by.Position < 0 || by.Position >= len(a.selectors) {
		return mutated(rule.Undecided(fmt.Errorf("the rule %s has no target %d, which is a defect", a.Name(), by.Position)), nil)
	}
	s := &a.selectors[by.Position]
	within := data.With("target", target)
	s.values.Add(ctx, within)
	words := a.Properties().In(within)
	if no := met(s.preconditions, within, s.path+".preconditions"); no != nil {
		return mutated(no, words)
	}
	changed, err := a.changes.Apply(ctx, within, target)
	if skipped, ok := errors.AsType[*patch.SkippedError](err); ok {
		return mutated(rule.Skip(skipped.Error()), words)
	}
	if err != nil {
		return mutated(rule.Undecided(err), words)
	}
	if len(patch.Diff(target, changed)) == 0 {
		return policy.Mutated{Result: policy.Pass, Properties: words}
	}
	return policy.Mutated{Result: policy.Pass, Object: changed, Properties: words}
}

func mutated(a *rule.Answer, words map[string]string) policy.Mutated {
	return policy.Mutated{Result: a.Result, Reasons: a.Reasons, Properties: words}
}
