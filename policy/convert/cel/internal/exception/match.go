package exception

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// facts are about the objects for which the policies of an exception hold.
type facts struct {
	subresources bool // requests for subresources may be among them
	namespaces   bool // Namespaces may be
	deletes      bool // deletions may be, which have an old object alone
}

func factsOf(targets []Target) (f facts) {
	for _, t := range targets {
		f.deletes = f.deletes || t.Deletes
		for _, r := range t.Resources {
			f.subresources = f.subresources || strings.ContainsAny(r, "/*") || r == "pods" // with the containers that are added later
			f.namespaces = f.namespaces || strings.Contains(r, "*") || r == "namespaces"
		}
	}
	return f
}

// part is what a filter requires by one of its fields.
type part struct{ name, expression string }

// conditionsOf writes a match: one condition for each field of a single filter, else one for all.
func conditionsOf(m match.Document, f facts) ([]admission.MatchCondition, error) {
	filters, field := m.Any, ".any"
	switch {
	case len(m.All) > 0:
		filters, field = m.All, ".all"
	case len(m.Any) == 0:
		filters, field = []match.Filter{m.Filter}, ""
	}
	var conditions []admission.MatchCondition
	var alternatives []string
	for i, filter := range filters {
		at := "spec.match" + field
		if field != "" {
			at = source.Index(at, i)
		}
		parts, err := partsOf(filter, at, f)
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 && field == ".any" {
			return nil, nil // everything
		}
		var all []string
		for _, p := range parts {
			all = append(all, p.expression)
			name := p.name
			if i > 0 {
				name += "-" + strconv.Itoa(i+1)
			}
			conditions = append(conditions, admission.MatchCondition{Name: name, Expression: p.expression})
		}
		alternatives = append(alternatives, joined(all, " && "))
	}
	if field == ".any" && len(filters) > 1 {
		return []admission.MatchCondition{{Name: "matched", Expression: joined(alternatives, " ||\n")}}, nil
	}
	return conditions, nil
}

// joined joins expressions, those with an operator of another precedence in parentheses.
func joined(all []string, by string) string {
	if len(all) == 1 {
		return all[0]
	}
	for i, text := range all {
		if strings.Contains(text, " || ") || strings.Contains(text, " && ") {
			all[i] = "(" + text + ")"
		}
	}
	return strings.Join(all, by)
}

func partsOf(f match.Filter, at string, about facts) (parts []part, err error) {
	r := &f.Resources
	add := func(name string, expression string, problem error) {
		if expression != "" {
			parts = append(parts, part{name, expression})
		}
		if err == nil {
			err = problem
		}
	}
	switch {
	case len(f.Roles) > 0:
		return nil, &source.Unsupported{Path: at + ".roles", Found: "roles of the user, which CEL does not know"}
	case len(f.ClusterRoles) > 0:
		return nil, &source.Unsupported{Path: at + ".clusterRoles", Found: "cluster roles of the user, which CEL does not know"}
	}
	about.namespaces = about.namespaces && (len(r.Kinds) == 0 || slices.ContainsFunc(r.Kinds, isNamespace))
	kinds, problem := kindsOf(r.Kinds, at+".resources.kinds", about)
	add("kinds", kinds, problem)
	if len(r.Operations) > 0 {
		add("operations", celtext.Any("request.operation", r.Operations), nil)
	}
	names, place := r.Names, func(i int) string { return source.Index(at+".resources.names", i) }
	if r.Name != nil {
		names, place = []string{*r.Name}, func(int) string { return at + ".resources.name" }
	}
	expression, problem := namesOf(names, place, about)
	add("names", expression, problem)
	expression, problem = namespacesOf(r.Namespaces, at+".resources.namespaces", about)
	add("namespaces", expression, problem)
	expression, problem = annotationsOf(r.Annotations, at+".resources.annotations", about)
	add("annotations", expression, problem)
	expression, problem = selected(about.object()+".?metadata.?labels", r.Selector, at+".resources.selector")
	add("labels", expression, problem)
	if r.NamespaceSelector != nil && about.namespaces {
		problem = &source.Unsupported{Path: at + ".resources.namespaceSelector", Found: "a selector of namespaces, which exempts no Namespace"}
	} else {
		expression, problem = selected("namespaceObject.metadata.?labels", r.NamespaceSelector, at+".resources.namespaceSelector")
	}
	add("namespace-labels", expression, problem)
	var users []string
	for _, s := range f.Subjects {
		users = append(users, userOf(s.Kind, s.Namespace, s.Name))
	}
	add("users", strings.Join(users, " || "), nil)
	return parts, err
}

func isNamespace(kind string) bool {
	return strings.ContainsAny(kind, "*?") || kind == "Namespace" || strings.HasSuffix(kind, "/Namespace")
}

// object is the variable of the object, or of the deleted one.
func (f facts) object() string {
	if f.deletes {
		return "(object != null ? object : oldObject)"
	}
	return "object"
}

// plainKind is Kind, version/Kind or group/version/Kind.
var plainKind = regexp.MustCompile(`^(?:(?:([a-z0-9.-]+|\*)/)?(v[0-9][a-z0-9]*|\*)/)?([A-Z][A-Za-z0-9]*)$`)

// kindsOf requires one of some kinds. In an exception a kind does not include its subresources, nor the
// containers that are added to a pod later.
func kindsOf(kinds []string, at string, about facts) (string, error) {
	if len(kinds) == 0 {
		return "", nil
	}
	var plain, alternatives []string
	every := false
	for i, text := range kinds {
		parts := plainKind.FindStringSubmatch(text)
		switch {
		case text == "*":
			every = true
			continue
		case parts == nil:
			return "", &source.Unsupported{Path: source.Index(at, i), Found: fmt.Sprintf("%q has a subresource or a wildcard", text)}
		}
		group, version, kind := parts[1], parts[2], parts[3]
		if strings.Trim(group+version, "*") == "" {
			plain = append(plain, kind)
			continue
		}
		var all []string
		if group != "" && group != "*" {
			all = append(all, "request.kind.group == "+celtext.String(group))
		}
		if version != "*" {
			all = append(all, "request.kind.version == "+celtext.String(version))
		}
		alternatives = append(alternatives, strings.Join(append(all, "request.kind.kind == "+celtext.String(kind)), " && "))
	}
	if len(plain) > 0 {
		alternatives = slices.Insert(alternatives, 0, celtext.Any("request.kind.kind", plain))
	}
	var all []string
	if !every {
		all = append(all, joined(alternatives, " || "))
	}
	if about.subresources {
		all = append(all, "request.?subResource.orValue('') == ''")
	}
	return joined(all, " && "), nil
}

// namesOnly reports whether each filter of a match names kinds, and these alone.
func namesOnly(m match.Document, kinds []string) bool {
	within := func(f match.Filter) bool {
		return len(f.Resources.Kinds) > 0 && !slices.ContainsFunc(f.Resources.Kinds, func(text string) bool {
			parts := plainKind.FindStringSubmatch(text)
			return parts == nil || !slices.Contains(kinds, parts[3])
		})
	}
	switch {
	case len(m.All) > 0:
		return slices.ContainsFunc(m.All, within)
	case len(m.Any) > 0:
		return !slices.ContainsFunc(m.Any, func(f match.Filter) bool { return !within(f) })
	}
	return within(m.Filter)
}

// namesOf requires one of some names. A name that is yet to be generated is matched by the beginning that it will have.
func namesOf(names []string, at func(i int) string, about facts) (string, error) {
	if len(names) == 0 || slices.Contains(names, "*") {
		return "", nil
	}
	own := about.object() + ".?metadata.?name.orValue('')"
	begun := about.object() + ".?metadata.?name.orValue(" + about.object() + ".?metadata.?generateName.orValue(''))"
	var plain, alternatives []string
	for i, name := range names {
		prefix, isPrefix := strings.CutSuffix(name, "*")
		suffix, isSuffix := strings.CutPrefix(name, "*")
		switch {
		case !wildcard.Contains(name):
			plain = append(plain, name)
		case isPrefix && !wildcard.Contains(prefix) && len(prefix) <= builtin.MaxGeneratedBase:
			alternatives = append(alternatives, begun+".startsWith("+celtext.String(prefix)+")")
		case isSuffix && !wildcard.Contains(suffix):
			alternatives = append(alternatives, own+".endsWith("+celtext.String(suffix)+")")
		default:
			return "", &source.Unsupported{Path: at(i), Found: fmt.Sprintf("%q: names with such wildcards, of which some are yet to be generated", name)}
		}
	}
	if len(plain) > 0 {
		alternatives = slices.Insert(alternatives, 0, celtext.Any(own, plain))
	}
	return strings.Join(alternatives, " || "), nil
}

// namespacesOf requires one of some namespaces. A Namespace is in none, and is selected by its name.
func namespacesOf(patterns []string, at string, about facts) (string, error) {
	switch {
	case len(patterns) == 0 || slices.Contains(patterns, "*"):
		return "", nil
	case about.namespaces:
		return "", &source.Unsupported{Path: at, Found: "namespaces, which select a Namespace by its own name"}
	}
	return celtext.Any("request.?namespace.orValue('')", patterns), nil
}

// annotationsOf requires annotations, with patterns of their values.
func annotationsOf(wanted map[string]string, at string, about facts) (string, error) {
	return entries(about.object()+".?metadata.?annotations", wanted, at)
}

// entries requires keys of a map, with patterns of their values.
func entries(of string, wanted map[string]string, at string) (string, error) {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		value, entry := wanted[key], of+"[?"+celtext.String(key)+"]"
		switch {
		case wildcard.Contains(key):
			return "", &source.Unsupported{Path: at + "[" + key + "]", Found: "a key with a wildcard"}
		case strings.Trim(value, "*") == "" && value != "":
			all = append(all, entry+".hasValue()")
		case value == "":
			all = append(all, entry+".hasValue() && "+entry+".value() == ''")
		case wildcard.Contains(value):
			all = append(all, celtext.Matches(value, entry+".orValue('')"))
		default:
			all = append(all, entry+".orValue('') == "+celtext.String(value))
		}
	}
	return joined(all, " && "), nil
}

// selected requires labels.
func selected(labels string, s *match.Selector, at string) (string, error) {
	if s == nil {
		return "", nil
	}
	var all []string
	text, err := entries(labels, s.MatchLabels, at+".matchLabels")
	if err != nil {
		return "", err
	}
	if text != "" {
		all = append(all, text)
	}
	for _, e := range s.MatchExpressions {
		entry := labels + "[?" + celtext.String(e.Key) + "]"
		switch e.Operator {
		case "In":
			all = append(all, hasOneOf(entry, e.Values))
		case "NotIn":
			all = append(all, "!("+hasOneOf(entry, e.Values)+")")
		case "Exists":
			all = append(all, entry+".hasValue()")
		default:
			all = append(all, "!"+entry+".hasValue()")
		}
	}
	return joined(all, " && "), nil
}

// hasOneOf requires that an entry, which may be absent, has one of some values.
func hasOneOf(entry string, values []string) string {
	if slices.Contains(values, "") {
		return entry + ".hasValue() && " + celtext.Any(entry+".value()", values)
	}
	return celtext.Any(entry+".orValue('')", values)
}

// userOf requires a user, a group or an account.
func userOf(kind, namespace, name string) string {
	switch kind {
	case "ServiceAccount":
		return celtext.Any("request.userInfo.username", []string{"system:serviceaccount:" + namespace + ":" + name})
	case "User":
		return celtext.Any("request.userInfo.username", []string{name})
	}
	if wildcard.Contains(name) {
		return "request.userInfo.groups.exists(group, " + celtext.Matches(name, "group") + ")"
	}
	return celtext.String(name) + " in request.userInfo.groups"
}
