package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/gateway/native/fitness"
	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	convert "github.com/quaymaster/quaymaster/policy/convert/native"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/workload"
)

// plan has the objects for one version of a policy.
type plan struct {
	id, hash string
	// objects are written in their order; none if there is a reason why the policy stays in the webhook.
	objects []object
	reason  string
}

// planner makes plans. Conversions are kept by the hash of the document.
type planner struct {
	settings  Settings
	withheld  func(catalog.Entry) string
	converted map[string]plan
	versions  versions
}

// document is an active document and its text.
type document struct {
	entry catalog.Entry
	text  []byte
}

// plans returns the plans for all policies with rules that an API server might evaluate, by their IDs.
func (p *planner) plans(documents []document, active *set.Set, served versions) map[string]plan {
	if served != p.versions || p.converted == nil {
		p.versions, p.converted = served, map[string]plan{}
	}
	found, kept := map[string]plan{}, map[string]plan{}
	for _, d := range documents {
		of := d.entry.Policy
		if of == nil {
			continue
		}
		now := effective(active, of.ID())
		if !hasForm(of) && !hasForm(now) {
			continue
		}
		one := plan{id: of.ID(), hash: of.Hash, reason: p.obstacle(d, now, active)}
		if now != nil {
			one.hash = now.Hash // the webhooks hold this version
		}
		if one.reason == "" {
			made, ok := p.converted[of.Hash]
			if !ok {
				made = p.convert(d)
			}
			kept[of.Hash], one = made, made
		}
		found[one.id] = one
	}
	p.converted = kept
	limit(found)
	return found
}

// limit keeps the last policies in the webhook where there would be more objects than are listed at once.
func limit(plans map[string]plan) {
	left := maxObjects - reserved
	for _, id := range slices.Sorted(maps.Keys(plans)) {
		p := plans[id]
		left -= len(p.objects) / 2 // each policy has a binding
		if left < 0 && len(p.objects) > 0 {
			plans[id] = plan{id: p.id, hash: p.hash, reason: fmt.Sprintf("there are more than %d native policies", maxObjects-reserved)}
		}
	}
}

// effective returns the version of a policy that is in force; nil for none.
func effective(active *set.Set, id string) *policy.Policy {
	all := active.Policies()
	at := slices.IndexFunc(all, func(p *policy.Policy) bool { return p.ID() == id })
	if at < 0 {
		return nil
	}
	return all[at]
}

// hasForm reports whether a policy is of a kind with a form for the API server. Rules about images have none.
func hasForm(p *policy.Policy) bool {
	if p == nil {
		return false
	}
	switch p.Kind {
	case "ClusterPolicy", "Policy", "ValidatingPolicy", "NamespacedValidatingPolicy", "MutatingPolicy", "NamespacedMutatingPolicy":
		return p.Broken != nil || len(p.Validations)+len(p.Mutations) > 0
	}
	return false
}

// obstacle returns why a policy stays in the webhook whatever its rules are.
func (p *planner) obstacle(d document, now *policy.Policy, active *set.Set) string {
	of := d.entry.Policy
	switch {
	case p.settings.Mode == record.Off:
		return "policies.nativePolicies is off"
	case d.entry.State != catalog.Ours:
		return "it cannot be evaluated"
	case p.settings.Mode == record.Requested && !asks(d.text):
		return "policies.nativePolicies is requested, and it does not ask for a native policy"
	case !strings.HasPrefix(d.entry.Key, kinds.FromCluster):
		return "it is in a folder and not in the cluster, so that nothing would own the native policy"
	case p.withheld != nil && p.withheld(d.entry) != "":
		return p.withheld(d.entry)
	case now == nil || now.Hash != of.Hash:
		return "another version of it is in force"
	}
	for _, e := range active.Exceptions() {
		if slices.ContainsFunc(e.Rules, func(r policy.ExceptedRule) bool { return names(r, of) }) {
			return "the PolicyException " + e.ID() + " is about it"
		}
	}
	return ""
}

// names reports whether an exception names a policy.
func names(r policy.ExceptedRule, p *policy.Policy) bool {
	name := p.Name
	if p.Namespace != "" {
		name = p.Namespace + "/" + name
	}
	either := r.Kind == "" && (p.Kind == "ClusterPolicy" || p.Kind == "Policy")
	return (either || r.Kind == p.Kind) && r.Policy == name
}

// asks reports whether a policy asks for a native policy by its own field.
func asks(text []byte) bool {
	type enabled struct {
		Enabled bool `json:"enabled"`
	}
	var d struct {
		Spec struct {
			Autogen struct {
				Validating enabled `json:"validatingAdmissionPolicy"`
				Mutating   enabled `json:"mutatingAdmissionPolicy"`
			} `json:"autogen"`
			Rules []struct {
				Validate struct {
					CEL struct {
						Generate bool `json:"generate"`
					} `json:"cel"`
				} `json:"validate"`
			} `json:"rules"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return false
	}
	for _, r := range d.Spec.Rules {
		if !r.Validate.CEL.Generate {
			return false
		}
	}
	return d.Spec.Autogen.Validating.Enabled || d.Spec.Autogen.Mutating.Enabled || len(d.Spec.Rules) > 0
}

// convert converts one policy.
func (p *planner) convert(d document) plan {
	made := plan{id: d.entry.Policy.ID(), hash: d.entry.Policy.Hash}
	objects, err := p.objects(d)
	if err != nil {
		made.reason = err.Error()
		return made
	}
	made.objects = objects
	return made
}

func (p *planner) objects(d document) ([]object, error) {
	parsed, err := workload.Parse(d.text)
	if err != nil {
		return nil, err
	}
	exempt := slices.Compact(slices.Sorted(slices.Values(append([]string{p.settings.Namespace}, p.settings.ExcludedNamespaces...))))
	converted, problems, err := convert.Convert([]workload.Object{parsed}, convert.Options{Kubernetes: p.versions.kubernetes, Exempt: exempt})
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s: %s", problems[0].Path, problems[0].Found)
	}
	own := origin{policy: d.entry.Policy, parsed: parsed}
	var policies, bindings []object
	for _, one := range converted {
		rule, binding, err := p.pair(own, one)
		if err != nil {
			return nil, err
		}
		policies, bindings = append(policies, rule), append(bindings, binding)
	}
	return append(policies, bindings...), nil
}

// pair returns the objects of one converted policy.
func (p *planner) pair(of origin, c convert.Policy) (rule, binding object, err error) {
	name := of.name(c.Name)
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return rule, binding, fmt.Errorf("the native policy would have the name %q: %s", name, strings.Join(problems, ", "))
	}
	if v := c.Validating; v != nil {
		if p.versions.validating == "" {
			return rule, binding, errors.New("the API server serves no ValidatingAdmissionPolicy in v1 or v1beta1")
		}
		if err := fitness.Validating(&v.Policy.Spec); err != nil {
			return rule, binding, err
		}
		v.Binding.Spec.PolicyName = name
		p.exclude(v.Policy.Spec.MatchConstraints, &v.Binding.Spec.MatchResources)
		passExempt(&v.Policy.Spec)
		rule, err = of.object(validatingPolicies, p.versions.validating, name, v.Policy.Spec)
		if err == nil {
			binding, err = of.object(validatingBindings, p.versions.validating, name, v.Binding.Spec)
		}
		return rule, binding, err
	}
	m := c.Mutating
	if p.versions.mutating == "" {
		return rule, binding, errors.New("the API server serves no MutatingAdmissionPolicy in v1 or v1beta1")
	}
	if err := fitness.Mutating(&m.Policy.Spec); err != nil {
		return rule, binding, err
	}
	m.Binding.Spec.PolicyName = name
	p.exclude(m.Policy.Spec.MatchConstraints, &m.Binding.Spec.MatchResources)
	m.Policy.Spec.MatchConditions = conditions(m.Policy.Spec.MatchConditions)
	rule, err = of.object(mutatingPolicies, p.versions.mutating, name, m.Policy.Spec)
	if err == nil {
		binding, err = of.object(mutatingBindings, p.versions.mutating, name, m.Binding.Spec)
	}
	return rule, binding, err
}

// exclude moves the exempt namespaces from the match of a binding to that of its policy, and adds the label that opens a
// namespace in an emergency. They are written together with what they limit: a binding is another object, which may be
// older than the policy. And an API server parses each selector for each request, so that there is one, without what it
// leaves out already.
func (p *planner) exclude(policy *admission.MatchResources, binding **admission.MatchResources) {
	excluded := (*binding).NamespaceSelector.MatchExpressions
	*binding = nil
	if p.settings.BreakGlass {
		excluded = append(excluded, meta.LabelSelectorRequirement{Key: configuration.BreakGlass, Operator: meta.LabelSelectorOpDoesNotExist})
	}
	if policy.NamespaceSelector == nil {
		policy.NamespaceSelector = &meta.LabelSelector{}
	}
	own := policy.NamespaceSelector
	for _, e := range excluded {
		if !leavesOut(own, e) {
			own.MatchExpressions = append(own.MatchExpressions, e)
		}
	}
}

// leavesOut reports whether a selector wants a label to have values of which an exclusion has none.
func leavesOut(selector *meta.LabelSelector, exclusion meta.LabelSelectorRequirement) bool {
	if exclusion.Operator != meta.LabelSelectorOpNotIn {
		return false
	}
	excluded := func(value string) bool { return slices.Contains(exclusion.Values, value) }
	if value, ok := selector.MatchLabels[exclusion.Key]; ok && !excluded(value) {
		return true
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(r meta.LabelSelectorRequirement) bool {
		return r.Key == exclusion.Key && r.Operator == meta.LabelSelectorOpIn && len(r.Values) > 0 && !slices.ContainsFunc(r.Values, excluded)
	})
}
