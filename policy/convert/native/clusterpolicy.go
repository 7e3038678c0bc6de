package native

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/autogen"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// clusterPolicy is a ClusterPolicy or Policy of kyverno.io with the fields that are carried; the compiler
// of the dialect has read all of them.
type clusterPolicy struct {
	ValidationFailureAction          string          `json:"validationFailureAction"`
	ValidationFailureActionOverrides json.RawMessage `json:"validationFailureActionOverrides"`
	FailurePolicy                    string          `json:"failurePolicy"`
	EmitWarning                      bool            `json:"emitWarning"`
	ApplyRules                       string          `json:"applyRules"`
	Admission                        *bool           `json:"admission"`
	WebhookConfiguration             *struct {
		FailurePolicy   string                     `json:"failurePolicy"`
		MatchConditions []admission.MatchCondition `json:"matchConditions"`
	} `json:"webhookConfiguration"`
	Rules []rule `json:"rules"`
}

type rule struct {
	Name             string                     `json:"name"`
	Match            match.Document             `json:"match"`
	Exclude          *match.Document            `json:"exclude"`
	Context          json.RawMessage            `json:"context"`
	Preconditions    json.RawMessage            `json:"preconditions"`
	CELPreconditions []admission.MatchCondition `json:"celPreconditions"`
	Validate         *struct {
		FailureAction          string          `json:"failureAction"`
		FailureActionOverrides json.RawMessage `json:"failureActionOverrides"`
		Message                string          `json:"message"`
		CEL                    *expressions    `json:"cel"`
	} `json:"validate"`
}

type expressions struct {
	Expressions      []admission.Validation      `json:"expressions"`
	Variables        []admission.Variable        `json:"variables"`
	AuditAnnotations []admission.AuditAnnotation `json:"auditAnnotations"`
	ParamKind        *admission.ParamKind        `json:"paramKind"`
	ParamRef         *admission.ParamRef         `json:"paramRef"`
}

// clusterPolicy converts the rules of a ClusterPolicy or Policy, if all of them are validations in CEL.
func (c *converter) clusterPolicy(d source.Document) {
	var spec clusterPolicy
	e, ok := c.read(d, c.kyverno.Compile, &spec)
	if !ok {
		return
	}
	for _, one := range []struct {
		given      bool
		name, what string
	}{
		{spec.ApplyRules == "One" && len(spec.Rules) > 1, "applyRules", "asks for the first rule that applies, and no other"},
		{len(spec.ValidationFailureActionOverrides) > 0, "validationFailureActionOverrides", "gives namespaces actions of their own"},
		{spec.Admission != nil && !*spec.Admission, "admission", "is false: only scans evaluate the policy"},
	} {
		if one.given {
			c.Refuse(d.At("spec."+one.name), one.what, "split the policy, or keep it")
		}
	}
	for i := range spec.Rules {
		c.celRule(e, &spec, i)
	}
}

// celRule adds a policy for each filter of a rule's match, of which any may hold, and for the controllers of
// pods.
func (c *converter) celRule(e *enforced, spec *clusterPolicy, i int) {
	r, at := &spec.Rules[i], fmt.Sprintf("spec.rules[%d]", i)
	if r.Validate == nil || r.Validate.CEL == nil {
		c.Refuse(e.At(at), "is no validation in CEL", "an API server evaluates nothing else: split the policy, or keep it")
		return
	}
	for _, one := range []struct {
		given json.RawMessage
		name  string
	}{{r.Context, "context"}, {r.Preconditions, "preconditions"}, {r.Validate.FailureActionOverrides, "validate.failureActionOverrides"}} {
		if len(one.given) > 0 && string(one.given) != "null" {
			c.Refuse(e.At(at+"."+one.name), "has no equivalent", "write celPreconditions, split the policy, or keep it")
		}
	}
	base := e.identity
	if len(spec.Rules) > 1 {
		base.name += "-" + r.Name
	}
	for n, f := range c.selections(e.Document, r, at) {
		id := base
		if n > 0 {
			id.name += "-" + strconv.Itoa(n+1)
		}
		c.celPolicy(e, spec, celRule{rule: r, at: at, id: c.named(id, ""), selection: f})
		for _, follower := range followersOf(e.compiled, r.Name, f.match) {
			of := f
			of.match = follower.Match
			c.celPolicy(e, spec, celRule{rule: r, at: at, id: c.named(id, follower.Prefix), selection: of, template: follower.Template})
		}
	}
}

// celRule is a rule for one match.
type celRule struct {
	*rule
	at        string
	id        identity
	selection selection
	template  kyvernocel.Template
}

// celPolicy adds the policy of a rule for one match.
func (c *converter) celPolicy(e *enforced, spec *clusterPolicy, r celRule) {
	cel := r.Validate.CEL
	t := translation{converter: c, Document: e.Document, template: r.template, hasParams: cel.ParamKind != nil}
	env := c.language.ofRules(t.hasParams)
	out := admission.ValidatingAdmissionPolicySpec{
		MatchConstraints: confined(*r.selection.match.DeepCopy(), e.identity.namespace), FailurePolicy: failureOf(spec), ParamKind: cel.ParamKind,
	}
	if w := spec.WebhookConfiguration; w != nil {
		whole := t
		whole.template = nil // they are about the object of the request
		out.MatchConditions = whole.conditions(w.MatchConditions, "spec.webhookConfiguration.matchConditions")
	}
	out.MatchConditions = append(out.MatchConditions, r.selection.conditions...)
	for i, p := range t.conditions(r.CELPreconditions, r.at+".celPreconditions") {
		if p.Name == "" {
			p.Name = "precondition-" + strconv.Itoa(i+1)
		}
		out.MatchConditions = append(out.MatchConditions, p)
	}
	place := r.at + ".validate.cel"
	out.Variables = t.variables(env, cel.Variables, place+".variables")
	if strings.Contains(r.Validate.Message, "{{") {
		c.Refuse(e.At(r.at+".validate.message"), "has a variable of JMESPath", "write messageExpression, or keep the policy")
	}
	for i, v := range cel.Expressions {
		if v.Message == "" {
			v.Message = r.Validate.Message
		}
		out.Validations = append(out.Validations, t.validation(env, v, place+".expressions["+strconv.Itoa(i)+"]"))
	}
	out.AuditAnnotations = t.annotations(env, cel.AuditAnnotations, place+".auditAnnotations")
	var notes []string
	if len(cel.AuditAnnotations) > 0 {
		notes = append(notes, "An audit annotation that cannot be evaluated fails as a validation does; in the source it decides nothing.")
	}
	if c.options.Static && cel.ParamKind != nil {
		c.Refuse(e.At(place+".paramKind"), "files of an API server have no parameters", "write the values into the expressions, or keep the policy")
	}
	c.addValidating(e.Document, r.id, out, binding{params: cel.ParamRef, actions: r.actions(spec), notes: notes})
}

// actions are those of a rule: a failure is denied or audited, and with emitWarning warned about.
func (r *rule) actions(spec *clusterPolicy) []admission.ValidationAction {
	action := r.Validate.FailureAction
	if action == "" {
		action = spec.ValidationFailureAction
	}
	switch {
	case strings.EqualFold(action, string(policy.Enforce)):
		return []admission.ValidationAction{admission.Deny}
	case spec.EmitWarning:
		return []admission.ValidationAction{admission.Audit, admission.Warn}
	}
	return []admission.ValidationAction{admission.Audit}
}

func failureOf(spec *clusterPolicy) *admission.FailurePolicyType {
	text := spec.FailurePolicy
	if w := spec.WebhookConfiguration; w != nil && w.FailurePolicy != "" {
		text = w.FailurePolicy
	}
	failure := admission.Fail
	if text != "" {
		failure = admission.FailurePolicyType(text)
	}
	return &failure
}

// followersOf returns the matches of the rules that the dialect generates from a rule.
func followersOf(compiled *policy.Policy, name string, of *admission.MatchResources) []kyvernocel.FollowerMatch {
	var list []kyvernocel.FollowerMatch
	for _, one := range autogen.Followers(name, match.PodControllers()) {
		i := slices.IndexFunc(compiled.Validations, func(v policy.Validation) bool { return v.Name() == one.Name })
		if i < 0 {
			continue
		}
		prefix := "autogen-"
		if slices.Equal(one.Kinds, []string{"CronJob"}) {
			prefix = "autogen-cronjob-"
		}
		selected := of.DeepCopy()
		selected.ResourceRules = nil
		names := map[string][]string{}
		for _, t := range compiled.Validations[i].Targets() {
			if t.Subresource == "" {
				names[t.Group] = append(names[t.Group], resourcesOf(t.Group, t.Kind)...)
			}
		}
		for _, group := range slices.Sorted(maps.Keys(names)) {
			selected.ResourceRules = append(selected.ResourceRules, resourceRules(group, "*", names[group], of.ResourceRules[0].Operations)...)
		}
		list = append(list, kyvernocel.FollowerMatch{Prefix: prefix, Match: selected, Template: kyvernocel.Template(one.Template)})
	}
	return list
}

// selection is one filter of a match, without the exclusions of its rule.
type selection struct {
	match      *admission.MatchResources
	conditions []admission.MatchCondition
}

// inNamespaces requires a name of a namespace.
func inNamespaces(operator meta.LabelSelectorOperator, names []string) meta.LabelSelectorRequirement {
	return meta.LabelSelectorRequirement{Key: namespaceLabel, Operator: operator, Values: names}
}
