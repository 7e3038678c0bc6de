package native

import (
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// placed is a filter with its path.
type placed struct {
	match.Filter
	at string
}

// filtersOf returns the filters of a block of which any may hold; false if several must hold together.
func filtersOf(m match.Document, at string) ([]placed, bool) {
	one := func(list []match.Filter, name string) []placed {
		var all []placed
		for i, f := range list {
			all = append(all, placed{f, source.Index(at+"."+name, i)})
		}
		return all
	}
	switch {
	case len(m.All) > 1 || len(m.All) > 0 && len(m.Any) > 0:
		return nil, false
	case len(m.All) == 1:
		return one(m.All, "all"), true
	case len(m.Any) > 0:
		return one(m.Any, "any"), true
	}
	return []placed{{m.Filter, at}}, true
}

// selections returns the filters of a rule's match, each without its exclusions.
func (c *converter) selections(d source.Document, r *rule, at string) []selection {
	filters, ok := filtersOf(r.Match, at+".match")
	if !ok {
		c.Refuse(d.At(at+".match.all"), "several filters must hold together", "write them as one filter, or keep the policy")
		return nil
	}
	var excluded []string
	if r.Exclude != nil {
		excluded = c.exclusion(d, *r.Exclude, at+".exclude")
	}
	var list []selection
	for _, f := range filters {
		s := c.selection(d, f)
		if s != nil && len(excluded) > 0 && matchesNamespaces(s.match) {
			c.Refuse(d.At(at+".exclude"), "excludes Namespaces by a namespace", "match other kinds, or keep the policy")
		}
		if s != nil && len(excluded) > 0 {
			without(s.match, inNamespaces(meta.LabelSelectorOpNotIn, excluded))
		}
		if s != nil {
			list = append(list, *s)
		}
	}
	return list
}

// without adds a requirement to the selector of namespaces.
func without(from *admission.MatchResources, requirement meta.LabelSelectorRequirement) {
	selector := meta.LabelSelector{}
	if from.NamespaceSelector != nil {
		selector = *from.NamespaceSelector.DeepCopy()
	}
	selector.MatchExpressions = append(selector.MatchExpressions, requirement)
	from.NamespaceSelector = &selector
}

// selection returns a filter as a match; nil if it cannot be carried.
func (c *converter) selection(d source.Document, f placed) *selection {
	before, r := len(c.Problems), f.Resources
	c.onlyKinds(d, f)
	if r.Selector != nil {
		c.Refuse(d.At(f.at+".resources.selector"), "selects by the labels of the object, and for an API server by those of the old one, too",
			"write celPreconditions over object.metadata, or keep the policy")
	}
	out := &selection{match: &admission.MatchResources{}}
	operations := []admission.OperationType{admission.Create, admission.Update, admission.Delete, admission.Connect}
	if len(r.Operations) > 0 {
		operations = nil
		for _, o := range r.Operations {
			operations = append(operations, admission.OperationType(o))
		}
	}
	for i, kind := range r.Kinds {
		out.match.ResourceRules = append(out.match.ResourceRules, c.kind(d, kind, operations, source.Index(f.at+".resources.kinds", i))...)
	}
	if len(r.Kinds) == 0 {
		c.Refuse(d.At(f.at+".resources.kinds"), "is missing", "name the kinds, or keep the policy")
	}
	if r.NamespaceSelector != nil {
		out.match.NamespaceSelector = c.selector(d, r.NamespaceSelector, f.at+".resources.namespaceSelector")
	}
	if len(r.Namespaces) > 0 && c.plainNames(d, r.Namespaces, f.at+".resources.namespaces") {
		without(out.match, inNamespaces(meta.LabelSelectorOpIn, r.Namespaces))
		scope := admission.NamespacedScope
		for i := range out.match.ResourceRules {
			out.match.ResourceRules[i].Scope = &scope
		}
	}
	if (len(r.Namespaces) > 0 || r.NamespaceSelector != nil) && matchesNamespaces(out.match) {
		c.Refuse(d.At(f.at+".resources"), "selects Namespaces by a namespace", "match other kinds, or keep the policy")
	}
	if len(c.Problems) > before {
		return nil
	}
	return out
}

// onlyKinds refuses conditions on the user, and on names and annotations.
func (c *converter) onlyKinds(d source.Document, f placed) {
	if len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) > 0 {
		c.Refuse(d.At(f.at), "selects subjects, roles or clusterRoles", "write celPreconditions over request.userInfo, or keep the policy")
	}
	if r := f.Resources; r.Name != nil || len(r.Names)+len(r.Annotations) > 0 {
		c.Refuse(d.At(f.at+".resources"), "selects names or annotations", "write celPreconditions over object.metadata, or keep the policy")
	}
}

// exclusion returns the namespaces that a block excludes, if it excludes nothing else.
func (c *converter) exclusion(d source.Document, m match.Document, at string) []string {
	filters, ok := filtersOf(m, at)
	if !ok {
		c.Refuse(d.At(at+".all"), "several filters must hold together", "write any with one filter, or keep the policy")
		return nil
	}
	var names []string
	for _, f := range filters {
		r := f.Resources
		c.onlyKinds(d, f)
		if len(r.Namespaces) == 0 || len(r.Kinds) > 0 || r.Selector != nil || r.NamespaceSelector != nil || len(r.Operations) > 0 {
			c.Refuse(d.At(f.at+".resources"), "excludes by something other than namespaces", "write celPreconditions, or keep the policy")
			continue
		}
		if c.plainNames(d, r.Namespaces, f.at+".resources.namespaces") {
			names = append(names, r.Namespaces...)
		}
	}
	return names
}

func (c *converter) plainNames(d source.Document, names []string, at string) bool {
	for i, name := range names {
		if strings.ContainsAny(name, "*?") {
			c.Refuse(d.At(source.Index(at, i)), fmt.Sprintf("%q has a wildcard", name), "name the namespaces, write celPreconditions over request.namespace, or keep the policy")
			return false
		}
	}
	return true
}

// selector refuses wildcards, which Kubernetes does not have.
func (c *converter) selector(d source.Document, s *match.Selector, at string) *meta.LabelSelector {
	for key, value := range s.MatchLabels {
		if strings.ContainsAny(key+value, "*?") {
			c.Refuse(d.At(at+".matchLabels["+key+"]"), "has a wildcard", "write the labels, or keep the policy")
		}
	}
	out := &meta.LabelSelector{MatchLabels: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		out.MatchExpressions = append(out.MatchExpressions,
			meta.LabelSelectorRequirement{Key: e.Key, Operator: meta.LabelSelectorOperator(e.Operator), Values: e.Values})
	}
	return out
}

// kind returns the rules for a kind as a rule names it: Kind, version/Kind or group/version/Kind, each with a
// subresource or without.
func (c *converter) kind(d source.Document, text string, operations []admission.OperationType, at string) []admission.NamedRuleWithOperations {
	group, version, subresource := "*", "*", ""
	parts := strings.Split(text, "/")
	of := slices.IndexFunc(parts, isKindName)
	switch {
	case of < 0 || strings.ContainsAny(text, "?") || of+2 < len(parts):
		c.Refuse(d.At(at), fmt.Sprintf("%q", text), "name a kind without wildcards, or keep the policy")
		return nil
	case of == 1:
		version = parts[0]
	case of == 2:
		group, version = parts[0], parts[1]
	}
	kind := parts[of]
	if of+1 < len(parts) {
		subresource = parts[of+1]
	}
	if strings.Contains(kind+subresource, "*") || isPattern(group) || isPattern(version) {
		c.Refuse(d.At(at), fmt.Sprintf("%q has a wildcard", text), "name the kinds, or keep the policy")
		return nil
	}
	names := resourcesOf(group, kind)
	if len(names) == 0 {
		c.Refuse(d.At(at), fmt.Sprintf("the resource of the kind %q is not known", kind), "name kinds of Kubernetes, write a ValidatingPolicy, or keep the policy")
		return nil
	}
	if subresource != "" {
		for i := range names {
			names[i] += "/" + subresource
		}
	}
	return resourceRules(group, version, names, operations)
}

// isPattern reports whether a group or a version has a wildcard. Kubernetes knows * alone, and takes any other
// pattern literally: it would match nothing.
func isPattern(text string) bool { return text != "*" && strings.Contains(text, "*") }

// isKindName reports whether a part of a selector is the name of a kind: it begins with a capital letter.
func isKindName(part string) bool { return part != "" && part[0] >= 'A' && part[0] <= 'Z' }

// resourcesOf returns the resources of a built-in kind.
func resourcesOf(group, kind string) []string {
	var names []string
	for _, r := range builtin.Resources() {
		if r.Kind == kind && (group == "*" || group == r.Group) && !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}

// resourceRules returns the rule for resources: requests for a resource itself are no CONNECT.
func resourceRules(group, version string, names []string, operations []admission.OperationType) []admission.NamedRuleWithOperations {
	if len(names) == 0 {
		return nil
	}
	if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "/") }) {
		operations = slices.DeleteFunc(slices.Clone(operations), func(o admission.OperationType) bool { return o == admission.Connect })
	}
	return []admission.NamedRuleWithOperations{{RuleWithOperations: admission.RuleWithOperations{
		Operations: operations, Rule: admission.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: names},
	}}}
}
