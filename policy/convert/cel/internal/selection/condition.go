package selection

import (
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// writer writes conditions.
type writer struct {
	// object names the object.
	object string
	// kinds are those that the rule matches.
	kinds []kind
	// old: the object is one of an update before it, of which the operation is none of the conditions.
	old bool
	// guarded: terms of other kinds are left out, so that the kinds are conditions.
	guarded bool
	// deletes: in doubt nothing is matched, since the objects that are matched are deleted.
	deletes bool
}

// matched writes that one of the terms holds: expressions that must all hold.
func (w *writer) matched(terms []term) ([]string, error) {
	var alternatives []string
	differ := w.guarded || slices.ContainsFunc(terms, func(t term) bool { return !slices.Equal(t.kinds, terms[0].kinds) })
	narrowed := !w.old && slices.ContainsFunc(terms, func(t term) bool { return !slices.Equal(t.operations, terms[0].operations) })
	plain := !w.guarded
	for _, t := range terms {
		conditions, err := w.conditions(t, t.kinds, false)
		if err != nil {
			return nil, err
		}
		if len(terms) == 1 && !w.guarded {
			return conditions, nil
		}
		plain = plain && len(conditions) == 0
		var guards []string
		if differ {
			guard, err := guardOf(t.kinds, t.at)
			if err != nil {
				return nil, err
			}
			guards = append(guards, guard)
		}
		if narrowed {
			guards = append(guards, celtext.Any("request.operation", t.operations))
		}
		alternatives = append(alternatives, celtext.And(append(guards, conditions...)))
	}
	if plain || slices.Contains(alternatives, "") { // the resources say it all, or a filter takes every object
		return nil, nil
	}
	return []string{either(alternatives)}, nil
}

// either writes that one of several expressions holds.
func either(alternatives []string) string {
	each := slices.Compact(slices.Clone(alternatives))
	return celtext.Join(each, " || ")
}

// excluded writes that none of the terms holds.
func (w *writer) excluded(terms []term) ([]string, error) {
	var all []string
	for _, t := range terms {
		kinds, guard, err := w.shared(t)
		if err != nil {
			return nil, err
		}
		if len(kinds) == 0 {
			continue // it excludes nothing that the rule matches
		}
		conditions, err := w.conditions(t, kinds, true)
		if err != nil {
			return nil, err
		}
		if slices.Contains(conditions, never) {
			continue
		}
		if t.narrowed && !w.old {
			conditions = append(conditions, celtext.Any("request.operation", t.operations))
		}
		if guard != "" {
			conditions = append([]string{guard}, conditions...)
		}
		if len(conditions) == 0 && t.narrowed {
			return []string{never}, nil
		}
		if len(conditions) == 0 {
			return nil, &source.Unsupported{Path: t.at, Found: "an exclusion of everything"}
		}
		all = append(all, celtext.Not(celtext.And(conditions)))
	}
	return all, nil
}

// shared returns the kinds that the rule matches and a term excludes, and the condition that an object is
// of one; no condition if all are.
func (w *writer) shared(t term) ([]kind, string, error) {
	if len(t.kinds) == 0 {
		return w.kinds, "", nil
	}
	outside := slices.DeleteFunc(slices.Clone(w.kinds), func(k kind) bool {
		return slices.ContainsFunc(t.kinds, func(of kind) bool { return of.includes(k) })
	})
	if len(outside) == 0 {
		return w.kinds, "", nil
	}
	meets := slices.DeleteFunc(slices.Clone(t.kinds), func(of kind) bool {
		return !slices.Contains(match.PodControllers(), of.name) && !slices.ContainsFunc(w.kinds, of.meets)
	})
	if len(meets) == 0 {
		return nil, "", nil
	}
	guard, err := guardOf(meets, t.at)
	return meets, guard, err
}

// guardOf writes that a request is about one of some kinds.
func guardOf(kinds []kind, at string) (string, error) {
	const name, group = "request.kind.kind", "request.kind.group"
	var names, alternatives []string
	for _, k := range kinds {
		switch {
		case k.subresource != "" || k.name == every || k.version != every && !k.builtin:
			return "", &source.Unsupported{Path: at + ".resources.kinds", Found: "a subresource, a version or all kinds in one of several filters"}
		case k.builtin || k.group == every:
			names = append(names, k.name)
		default:
			alternatives = append(alternatives, name+" == "+celtext.String(k.name)+" && "+group+" == "+celtext.String(k.group))
		}
	}
	if len(names) > 0 {
		alternatives = append([]string{celtext.Any(name, names)}, alternatives...)
	}
	return either(alternatives), nil
}

// conditions writes what a term requires besides kinds and operations. Kinds are those of its objects.
func (w *writer) conditions(t term, kinds []kind, excluding bool) ([]string, error) {
	excluding = excluding != w.deletes
	var all []string
	for _, f := range t.filters {
		r := &f.Resources
		if err := isWhole(r, kinds, f.at); err != nil {
			return nil, err
		}
		named, err := w.names(r, excluding, f.at)
		if err != nil {
			return nil, err
		}
		in, err := w.namespaces(r, kinds, excluding, f.at)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.Concat(named, in, w.texts("annotations", r.Annotations))...)
		if r.Selector != nil {
			all = append(all, w.texts("labels", r.Selector.MatchLabels)...)
			for i := range r.Selector.MatchExpressions {
				all = append(all, requirement(entry(w.object+".metadata.?labels", r.Selector.MatchExpressions[i].Key), r.Selector, i))
			}
		}
		if len(f.Subjects) > 0 {
			all = append(all, subjects(&f.Filter))
		}
	}
	return all, nil
}

// isWhole refuses conditions on the metadata of an object in requests for a subresource that brings
// another object.
func isWhole(r *match.Resources, kinds []kind, at string) error {
	if len(r.Annotations) == 0 && r.Selector == nil && r.Name == nil && len(r.Names) == 0 {
		return nil
	}
	for _, k := range kinds {
		if k.subresource != "" && !slices.Contains([]string{"status", builtin.Ephemeral, "resize", "finalize", "approval"}, k.subresource) {
			return &source.Unsupported{Path: at + ".resources.kinds", Found: "the metadata of an object at its subresource " + k.subresource}
		}
	}
	return nil
}

// names writes the names of objects. A name that is yet to be generated is compared by its beginning.
func (w *writer) names(r *match.Resources, excluding bool, at string) ([]string, error) {
	patterns := slices.Clone(r.Names)
	if r.Name != nil {
		patterns = append(patterns, *r.Name)
	}
	if len(patterns) == 0 || slices.Contains(patterns, every) {
		return nil, nil
	}
	if i := slices.IndexFunc(patterns, func(p string) bool { return strings.Contains(p, "?") }); i >= 0 {
		return nil, &source.Unsupported{Path: at + ".resources.names", Found: "a wildcard for one character, which a generated one may be"}
	}
	return []string{w.named(patterns, excluding)}, nil
}

// named writes that an object has one of some names. An exclusion covers an object without a name only if it
// covers every name that may come of it.
func (w *writer) named(patterns []string, excluding bool) string {
	begins := func(p string) bool { return strings.HasSuffix(p, every) }
	fixed := slices.DeleteFunc(slices.Clone(patterns), begins)
	var alternatives []string
	if excluding && len(fixed) > 0 {
		alternatives = append(alternatives, celtext.Any(w.object+".metadata.?name.orValue('')", fixed))
		patterns = slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return !begins(p) })
	}
	if len(patterns) > 0 {
		alternatives = append(alternatives, celtext.Any(w.object+".metadata.?name.orValue("+w.object+".metadata.?generateName.orValue(''))", patterns))
	}
	return strings.Join(alternatives, " || ")
}

// namespaces writes the names and labels of namespaces. A Namespace is selected by its own name, and has no
// labels of one.
func (w *writer) namespaces(r *match.Resources, kinds []kind, excluding bool, at string) ([]string, error) {
	var all []string
	own := func(k kind) bool { return k.name == namespaces && k.builtin || k.name == every }
	some, allOf := slices.ContainsFunc(kinds, own), !slices.ContainsFunc(kinds, func(k kind) bool { return k.name != namespaces || !k.builtin })
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, every) {
		name := "request.namespace"
		if slices.ContainsFunc(kinds, func(k kind) bool { return !k.namespaced && (k.name != namespaces || !k.builtin) }) {
			name = "request.?namespace.orValue('')" // a request for an object of the cluster has none
		}
		switch {
		case allOf:
			name = w.object + ".metadata.?name.orValue('')"
		case some:
			name = "(request.kind.kind == 'Namespace' ? " + w.object + ".metadata.?name.orValue('') : " + name + ")"
		}
		all = append(all, celtext.Any(name, r.Namespaces))
	}
	selector := r.NamespaceSelector
	if selector == nil {
		return all, nil
	}
	switch {
	case allOf && excluding:
		return []string{never}, nil
	case allOf:
		return all, nil
	case some:
		return nil, &source.Unsupported{Path: at + ".resources.namespaceSelector", Found: "labels of the namespace of Namespaces and other kinds"}
	}
	of := writer{object: "namespaceObject"}
	labels := of.texts("labels", selector.MatchLabels)
	for i := range selector.MatchExpressions {
		labels = append(labels, requirement(entry("namespaceObject.metadata.?labels", selector.MatchExpressions[i].Key), selector, i))
	}
	if !slices.ContainsFunc(kinds, func(k kind) bool { return !k.namespaced }) {
		return append(all, labels...), nil
	}
	if excluding {
		return append(all, append([]string{"namespaceObject != null"}, labels...)...), nil
	}
	if len(labels) == 0 {
		return all, nil
	}
	return append(all, either([]string{"namespaceObject == null", celtext.And(labels)})), nil
}

// texts writes the labels or annotations of an object, which may have wildcards.
func (w *writer) texts(name string, patterns map[string]string) []string {
	var all []string
	of := w.object + ".metadata.?" + name
	for _, key := range slices.Sorted(maps.Keys(patterns)) {
		value := patterns[key]
		at := entry(of, key)
		switch {
		case strings.ContainsAny(key, "*?"):
			all = append(all, of+".orValue({}).exists(key, value, "+celtext.And([]string{celtext.Matches(key, "key"), celtext.Matches(value, "value")})+")")
		case strings.Trim(value, every) == "" && value != "":
			all = append(all, at+".hasValue()")
		case value == "":
			all = append(all, at+".orValue(null) == ''")
		default:
			all = append(all, celtext.Matches(value, at+".orValue('')"))
		}
	}
	return all
}

// entry reads a key of an optional map.
func entry(of, key string) string {
	if celtext.IsField(key) {
		return of + ".?" + key
	}
	return of + "[?" + celtext.String(key) + "]"
}

// requirement writes one of the expressions over a label.
func requirement(label string, s *match.Selector, i int) string {
	e := s.MatchExpressions[i]
	switch e.Operator {
	case "Exists":
		return label + ".hasValue()"
	case "DoesNotExist":
		return "!" + label + ".hasValue()"
	}
	value := label + ".orValue('')"
	if slices.Contains(e.Values, "") { // an empty label is not a missing one
		value = label + ".orValue('*')"
	}
	in := celtext.Any(value, e.Values)
	if e.Operator == "NotIn" {
		return celtext.Not(in)
	}
	return in
}

// subjects writes that the requester is one of some.
func subjects(f *match.Filter) string {
	var names, groups, alternatives []string
	for _, s := range f.Subjects {
		switch s.Kind {
		case "ServiceAccount":
			names = append(names, "system:serviceaccount:"+s.Namespace+":"+s.Name)
		case "User":
			names = append(names, s.Name)
		default:
			groups = append(groups, s.Name)
		}
	}
	if len(names) > 0 {
		alternatives = append(alternatives, celtext.Any("request.userInfo.username", names))
	}
	for _, group := range groups {
		const all = "request.userInfo.?groups.orValue([])"
		if strings.ContainsAny(group, "*?") {
			alternatives = append(alternatives, all+".exists(group, "+celtext.Matches(group, "group")+")")
			continue
		}
		alternatives = append(alternatives, celtext.String(group)+" in "+all)
	}
	return strings.Join(alternatives, " || ")
}
