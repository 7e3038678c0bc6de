package match

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// checkVariables refuses variables, as Kyverno does: none is filled in here, so that a text with
// braces matches nothing, and its negation everything. Kinds, names and namespaces have checks of
// their own.
func (r *Filter) checkVariables(path string) error {
	d := &r.Resources
	resources := document.Join(path, "resources")
	texts := map[string]string{}
	for key, value := range d.Annotations {
		texts[resources+".annotations["+key+"]"] = key + value
	}
	d.Selector.texts(resources+".selector", texts)
	d.NamespaceSelector.texts(resources+".namespaceSelector", texts)
	for i, s := range r.Subjects {
		texts[at(document.Join(path, "subjects"), i)] = s.Name + s.Namespace
	}
	for i, role := range r.Roles {
		texts[at(document.Join(path, "roles"), i)] = role
	}
	for i, role := range r.ClusterRoles {
		texts[at(document.Join(path, "clusterRoles"), i)] = role
	}
	for _, place := range slices.Sorted(maps.Keys(texts)) {
		if strings.Contains(texts[place], "{{") {
			return field.Fail(place, "%q: variables are not filled in here: write the condition into preconditions", texts[place])
		}
	}
	return nil
}

// texts adds the keys and values of the selector, by their path.
func (s *Selector) texts(path string, into map[string]string) {
	if s == nil {
		return
	}
	for key, value := range s.MatchLabels {
		into[path+".matchLabels["+key+"]"] = key + value
	}
	for i, e := range s.MatchExpressions {
		into[path+".matchExpressions["+strconv.Itoa(i)+"]"] = e.Key + strings.Join(e.Values, "")
	}
}
