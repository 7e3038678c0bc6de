package kyverno

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/images"
	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// matches returns the template once for each filter of match, of which any
// may hold.
func (c reader) matches(rule rule, template ivp.Policy, at string) []ivp.Policy {
	at = source.Below(at, "match")
	if rule.Exclude != nil {
		c.exclude(&template, *rule.Exclude, strings.TrimSuffix(at, "match")+"exclude")
	}
	filters, place := rule.Match.Any, at+".any"
	switch {
	case len(rule.Match.All) > 1 || len(rule.Match.All) > 0 && len(rule.Match.Any) > 0:
		c.Refuse(at+".all", "several filters must hold together", "write them as one filter")
		return nil
	case len(rule.Match.All) == 1:
		filters, place = rule.Match.All, at+".all"
	case len(rule.Match.Any) == 0:
		filters, place = []filter{rule.Match.filter}, at
	}
	var list []ivp.Policy
	for i, f := range filters {
		where := place
		if place != at {
			where = source.Index(place, i)
		}
		p := template
		p.Conditions = slices.Clone(template.Conditions)
		c.filter(&p, f, where)
		list = append(list, p)
	}
	return list
}

func (c reader) filter(p *ivp.Policy, f filter, at string) {
	c.onlyResources(f, at)
	r, at := f.Resources, at+".resources"
	if len(r.Kinds) == 0 {
		c.Refuse(at+".kinds", "is missing", "say Pod")
	}
	for i, kind := range r.Kinds {
		if !slices.Contains([]string{"Pod", "v1/Pod", "*/Pod", "Pod/ephemeralcontainers", "v1/Pod/ephemeralcontainers"}, kind) {
			c.Refuse(source.Index(at+".kinds", i), fmt.Sprintf("%q", kind), "these policies evaluate pods of every controller: match Pod, or keep the rule as it is")
		}
	}
	match := ivp.Pods()
	if len(r.Operations) > 0 {
		match.ResourceRules[0].Operations = r.Operations
	}
	for i, operation := range r.Operations {
		if operation != "CREATE" && operation != "UPDATE" {
			c.Refuse(source.Index(at+".operations", i), fmt.Sprintf("%q", operation), "want CREATE or UPDATE: nothing else brings an image")
		}
	}
	match.ObjectSelector = c.plainSelector(r.Selector, at+".selector")
	match.NamespaceSelector = c.plainSelector(r.NamespaceSelector, at+".namespaceSelector")
	if len(r.Namespaces) > 0 {
		p.Conditions = append(p.Conditions, ivp.Condition{Name: "namespaces", Expression: "request.namespace.matches(" + images.Quote(anyOf(r.Namespaces)) + ")"})
	}
	p.Match = match
}

// onlyResources refuses conditions on the user, and on names and annotations.
func (c reader) onlyResources(f filter, at string) {
	if len(f.Subjects) > 0 || len(f.Roles)+len(f.ClusterRoles) > 0 {
		c.Refuse(at, "selects subjects, roles or clusterRoles",
			"write a matchCondition over request.userInfo into the new policy by hand, or keep the rule as it is")
	}
	if f.Resources.Name != "" || len(f.Resources.Names)+len(f.Resources.Annotations) > 0 {
		c.Refuse(at+".resources", "selects names or annotations",
			"write a matchCondition over object.metadata into the new policy by hand, or keep the rule as it is")
	}
}

// exclude carries filters for namespaces, of which none may hold.
func (c reader) exclude(p *ivp.Policy, m match, at string) {
	filters, place := m.Any, at+".any"
	switch {
	case len(m.All) > 0:
		c.Refuse(at+".all", "several filters must hold together", "write any with one filter")
		return
	case len(m.Any) == 0:
		filters, place = []filter{m.filter}, at
	}
	for i, f := range filters {
		where := place
		if place != at {
			where = source.Index(place, i)
		}
		c.onlyResources(f, where)
		r := f.Resources
		if len(r.Namespaces) == 0 || r.Selector != nil || r.NamespaceSelector != nil || len(r.Operations) > 0 ||
			len(r.Kinds) > 0 && !slices.Contains(r.Kinds, "Pod") && !slices.Contains(r.Kinds, "*") {
			c.Refuse(where+".resources", "excludes by something other than namespaces", "write a matchCondition into the new policy by hand, or keep the rule as it is")
			continue
		}
		p.Conditions = append(p.Conditions, ivp.Condition{
			Name: "not-excluded-" + strconv.Itoa(i+1), Expression: "!request.namespace.matches(" + images.Quote(anyOf(r.Namespaces)) + ")",
		})
	}
}

// plainSelector refuses wildcards, which Kubernetes' selectors do not have.
func (c reader) plainSelector(s *ivp.Selector, at string) *ivp.Selector {
	if s == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if hasWildcard(key) || hasWildcard(s.MatchLabels[key]) {
			c.Refuse(at+".matchLabels["+key+"]", "has a wildcard",
				"write a matchCondition over object.metadata.labels into the new policy by hand, or keep the rule as it is")
		}
	}
	own := *s
	own.MatchExpressions = slices.Clone(s.MatchExpressions)
	return &own
}

func hasWildcard(text string) bool { return strings.ContainsAny(text, "*?") }

// anyOf is an expression for texts with * and ?, of which one must fit the whole.
func anyOf(globs []string) string {
	parts := make([]string, len(globs))
	for i, glob := range globs {
		parts[i] = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(glob))
	}
	return "^(" + strings.Join(parts, "|") + ")$"
}
