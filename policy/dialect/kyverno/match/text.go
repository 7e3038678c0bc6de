package match

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	literals "github.com/quaymaster/quaymaster/policy/internal/requirement"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// A selector that can match nothing by its text alone is an error, whichever object comes:
// its rule, or its exclusion, would have no effect.

func compileFilter(r Filter, path string) (filter, error) {
	f := filter{Filter: r, names: r.Resources.Names, empty: r.empty()}
	d := &r.Resources
	resources := document.Join(path, "resources")
	var errs []error
	if d.Name != nil {
		errs = append(errs, CheckName(*d.Name, resources+".name"))
		if len(d.Names) > 0 {
			errs = append(errs, field.Fail(resources+".name", "Kyverno takes name or names, and here are both: write names"))
		}
		f.names = append(slices.Clone(f.names), *d.Name)
	}
	for i, text := range d.Kinds {
		kind, err := parseKind(text, at(resources+".kinds", i))
		errs = append(errs, err)
		if err == nil {
			f.kinds = append(f.kinds, kind)
		}
		if right := ofAnother(text); right != "" {
			f.foreign = append(f.foreign, field.Fail(at(resources+".kinds", i), "%q is of another kind in Kyverno, where it exempts nothing: write %s", text, right))
		}
	}
	for i, name := range d.Names {
		errs = append(errs, CheckName(name, at(resources+".names", i)))
	}
	for i, namespace := range d.Namespaces {
		errs = append(errs, CheckNamespace(namespace, at(resources+".namespaces", i)))
	}
	for i, operation := range d.Operations {
		if !isOperation(operation) {
			errs = append(errs, field.Fail(at(resources+".operations", i), "unknown operation %q: want CREATE, UPDATE, DELETE or CONNECT", operation))
		}
	}
	errs = append(errs, checkAnnotations(d.Annotations, resources+".annotations"))
	if s := d.Selector; s != nil && !s.selects() {
		errs = append(errs, field.Fail(resources+".selector", "has no requirement, and so would match everything: name labels, or leave it out"))
	}
	errs = append(errs, r.checkVariables(path), r.checkUsers(path), d.Selector.Validate(resources+".selector"),
		d.NamespaceSelector.Validate(resources+".namespaceSelector"))
	if errors.Join(errs...) == nil {
		errs = append(errs, f.checkReach(resources), f.checkDomains(resources))
	}
	return f, errors.Join(errs...)
}

func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func isOperation(text string) bool {
	return slices.Contains(builtin.Operations(), text)
}

// CheckName refuses a pattern that no name of an object matches.
func CheckName(name, path string) error {
	switch {
	case name == "":
		return field.Fail(path, "is empty, which no name is")
	case strings.Contains(name, "{{"):
		return field.Fail(path, "%q: variables are not filled in here, and no name has braces", name)
	case strings.ContainsAny(name, "/%") || name == "." || name == "..":
		return field.Fail(path, "%q matches no name: names have no / and no %%", name)
	}
	return nil
}

// checkAnnotations refuses keys that no annotation has. Their prefix may have upper-case letters.
func checkAnnotations(annotations map[string]string, path string) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if key == "" {
			errs = append(errs, field.Fail(path, "has an empty key, which no annotation has"))
		} else if problem := literals.CheckKey(strings.ToLower(key)); problem != "" {
			errs = append(errs, field.Fail(path+"["+key+"]", "%q is the key of no annotation: %s", key, problem))
		}
	}
	return errors.Join(errs...)
}

// isDomain reports whether a pattern has only characters of lower-case domain names, which the
// names of most objects are, and wildcards. A generateName may end with a hyphen.
func isDomain(pattern string) bool {
	return !strings.ContainsFunc(pattern, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-.*?", r) })
}

// checkDomains refuses names that no object has, if the filter is about kinds with names of domains
// alone. Other kinds, as roles, have names with other characters.
func (f *filter) checkDomains(path string) error {
	if len(f.kinds) == 0 || slices.ContainsFunc(f.kinds, func(k kindSelector) bool { return !k.namesDomains() }) {
		return nil
	}
	if i := slices.IndexFunc(f.names, func(name string) bool { return !isDomain(name) }); i >= 0 {
		return field.Fail(path+".names", "%q matches no name: names of these kinds are lower-case letters, digits, hyphens and periods", f.names[i])
	}
	return nil
}

// namesDomains reports whether the names of the selected objects are domain names for certain.
func (s kindSelector) namesDomains() bool {
	return len(s.builtins()) > 0 && !slices.ContainsFunc(s.builtins(), func(r builtin.Resource) bool { return !r.NamesDomains() })
}

// CheckNamespace refuses a pattern that no name of a namespace matches.
func CheckNamespace(name, path string) error {
	if name == "" {
		return field.Fail(path, "is empty, which no namespace is; objects without a namespace are selected by their kind")
	}
	if !isDomain(name) || strings.Contains(name, ".") || !wildcard.Contains(name) && len(validation.IsDNS1123Label(name)) > 0 {
		return field.Fail(path, "%q matches no namespace: their names are lower-case letters, digits and hyphens", name)
	}
	return nil
}

// checkUsers refuses users and roles that Kyverno refuses, and those that no request has.
func (r *Filter) checkUsers(path string) error {
	var errs []error
	for i, s := range r.Subjects {
		place := at(document.Join(path, "subjects"), i)
		switch {
		case !slices.Contains([]string{"User", "Group", "ServiceAccount"}, s.Kind):
			errs = append(errs, field.Fail(place+".kind", "unknown kind %q: want User, Group or ServiceAccount", s.Kind))
		case s.Name == "":
			errs = append(errs, field.Fail(place+".name", "is empty, which no user, group and account is"))
		case s.Kind == "ServiceAccount" && s.Namespace == "":
			errs = append(errs, field.Fail(place+".namespace", "is empty, and an account is in a namespace: name it, * for every one"))
		case s.Kind == "ServiceAccount" && !isDomain(s.Name+s.Namespace):
			errs = append(errs, field.Fail(place+".name", "%q in the namespace %q matches no account: write the account's name alone, in lower case", s.Name, s.Namespace))
		}
	}
	for i, role := range r.Roles {
		namespace, name, found := strings.Cut(role, ":")
		if !found || namespace == "" || name == "" || strings.Contains(name, ":") {
			errs = append(errs, field.Fail(at(document.Join(path, "roles"), i), "%q: want NAMESPACE:NAME", role))
		}
	}
	for i, role := range r.ClusterRoles {
		if role == "" {
			errs = append(errs, field.Fail(at(document.Join(path, "clusterRoles"), i), "is empty, which no role is"))
		}
	}
	return errors.Join(errs...)
}

// overlap refuses filters which must all match, and of which two can match no object
// together.
func (b Block) overlap(path string) error {
	for i := range b.filters {
		for k := range b.filters[:i] {
			if what := b.filters[k].disjoint(&b.filters[i]); what != "" {
				return field.Fail(at(document.Join(path, "all"), i),
					"no object has the %s of this filter and those of all[%d], and so the block would match nothing", what, k)
			}
		}
	}
	return nil
}

// disjoint names the field in which no object meets two filters; empty if one may.
func (f *filter) disjoint(other *filter) string {
	apart := func(a, b []string) bool { // no text matches a pattern of both
		return len(a) > 0 && len(b) > 0 && !slices.ContainsFunc(a, func(x string) bool {
			return slices.ContainsFunc(b, func(y string) bool { return wildcard.Overlap(x, y) })
		})
	}
	kinds := len(f.kinds) > 0 && len(other.kinds) > 0
	for _, a := range f.kinds {
		kinds = kinds && !slices.ContainsFunc(other.kinds, a.meets)
	}
	switch {
	case kinds:
		return "kinds"
	case apart(f.names, other.names):
		return "names"
	case apart(f.Resources.Namespaces, other.Resources.Namespaces):
		return "namespaces"
	case apart(f.Resources.Operations, other.Resources.Operations):
		return "operations"
	case literals.Contradiction(append(ofTexts(f.Resources.Annotations), ofTexts(other.Resources.Annotations)...)) != "":
		return "annotations"
	case f.Resources.Selector.contradicts(other.Resources.Selector) != "":
		return "labels"
	case f.Resources.NamespaceSelector.contradicts(other.Resources.NamespaceSelector) != "":
		return "labels of the namespace"
	}
	return ""
}

// meets reports whether one object may be of two kinds.
func (s kindSelector) meets(other kindSelector) bool {
	same := func(a, b string) bool { return a == b || wildcard.Contains(a) || wildcard.Contains(b) }
	later := func(a, b kindSelector) bool { return a.subresource == "" && b.subresource == ephemeralContainers }
	return same(s.group, other.group) && same(s.version, other.version) && same(s.kind, other.kind) &&
		(same(s.subresource, other.subresource) || later(s, other) || later(other, s))
}

// Validate refuses selectors that could not be evaluated, and those that no labels meet.
// A text with a variable is looked at once it is filled in.
func (s *Selector) Validate(path string) error {
	if s == nil {
		return nil
	}
	var errs []error
	for key, value := range s.MatchLabels {
		errs = append(errs, checkLabel(key, value, path+".matchLabels["+key+"]"))
	}
	for i, e := range s.MatchExpressions {
		errs = append(errs, e.validate(at(document.Join(path, "matchExpressions"), i)))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if why := s.contradicts(s); why != "" {
		return field.Fail(path, "no labels meet it: %s", why)
	}
	return nil
}

func checkLabel(key, value, path string) error {
	if problem := literals.CheckKey(key); problem != "" {
		return field.Fail(path, "%q is no label: %s", key, problem)
	}
	if problem := literals.CheckValue(value); problem != "" {
		return field.Fail(path, "%q is no value of a label: %s", value, problem)
	}
	return nil
}

func (e *requirement) validate(path string) error {
	switch e.Operator {
	case "In", "NotIn":
		if len(e.Values) == 0 {
			return field.Fail(path+".values", "%s wants at least one value", e.Operator)
		}
	case "Exists", "DoesNotExist":
		if len(e.Values) > 0 {
			return field.Fail(path+".values", "%s wants no values", e.Operator)
		}
	default:
		return field.Fail(path+".operator", "unknown operator %q: want In, NotIn, Exists or DoesNotExist", e.Operator)
	}
	if e.Key == "" {
		return field.Fail(path+".key", "is empty")
	}
	if problem := literals.CheckKey(e.Key); problem != "" || wildcard.Contains(e.Key) {
		return field.Fail(path+".key", "%q is no label: %s", e.Key, cmp.Or(problem, "wildcards are for matchLabels"))
	}
	for i, value := range e.Values {
		if problem := literals.CheckValue(value); problem != "" || wildcard.Contains(value) {
			return field.Fail(at(path+".values", i), "%q is no value of a label: %s", value, cmp.Or(problem, "wildcards are for matchLabels"))
		}
	}
	return nil
}

// contradicts returns why no labels meet two selectors together, or one with itself; empty
// if some may.
func (s *Selector) contradicts(other *Selector) string {
	if s == nil || other == nil {
		return ""
	}
	all := s.requirements()
	if other != s {
		all = append(all, other.requirements()...)
	}
	return literals.Contradiction(all)
}

// requirements are those of the selector with literal keys.
func (s *Selector) requirements() []literals.Requirement {
	list := ofTexts(s.MatchLabels)
	for _, e := range s.MatchExpressions {
		if !strings.Contains(e.Key+strings.Join(e.Values, ""), "{{") {
			list = append(list, literals.Requirement(e))
		}
	}
	return list
}

// ofTexts returns labels or annotations as requirements, without patterns of keys.
func ofTexts(texts map[string]string) []literals.Requirement {
	var list []literals.Requirement
	for key, value := range texts {
		if !wildcard.Contains(key) && !strings.Contains(key+value, "{{") {
			list = append(list, literals.Requirement{Key: key, Operator: "In", Values: []string{value}})
		}
	}
	return list
}
