package selection

import (
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// kind is a kind as a filter names it, by the name of its resource. Of *, name, version and group are *.
type kind struct {
	group, version, name, subresource string
	// resources are the names, in one group unless that is *.
	resources string
	// builtin: it is a kind of Kubernetes. namespaced: all of its objects are in namespaces.
	builtin, namespaced bool
	// guessed: only the kind suggests the name of the resource.
	guessed bool
}

const (
	every      = "*"
	namespaces = "Namespace"
)

// kindsFrom reads the kinds of a filter.
func kindsFrom(texts []string, at string) ([]kind, error) {
	var all []kind
	for i, text := range texts {
		one, err := kindFrom(text)
		if err != nil {
			return nil, &source.Unsupported{Path: source.Index(at, i), Found: err.Error()}
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all, nil
}

func kindFrom(text string) (kind, error) {
	block, err := match.Compile(match.Document{Filter: match.Filter{Resources: match.Resources{Kinds: []string{text}}}}, "the kind")
	if err != nil {
		return kind{}, err
	}
	t := block.TargetsAt(nil)[0] // more of them are subresources that follow
	k := kind{group: t.Group, version: t.Version, name: t.Kind, subresource: t.Subresource}
	for _, part := range []string{k.group, k.version, k.name, k.subresource} {
		if part != every && strings.ContainsAny(part, "*?") {
			return k, fmt.Errorf("%q has a wildcard within a name", text)
		}
	}
	if k.name == every {
		k.resources = every
		return k, nil
	}
	var found []builtin.Resource
	for _, r := range builtin.Resources() {
		if r.Kind == k.name && (k.group == every || r.Group == k.group) {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		k.resources, err = plural(k.name)
		k.guessed = true
		return k, err
	}
	if k.group == every && len(found) == 1 {
		k.group = found[0].Group
	}
	if k.name == "Pod" && k.group == "" && k.version == every {
		k.version = "v1" // the form for which rules about controllers are generated
	}
	k.resources, k.builtin = found[0].Name, true
	k.namespaced = !slices.ContainsFunc(found, func(r builtin.Resource) bool { return r.Cluster })
	return k, nil
}

// plural returns the resource of a custom kind by the rules of English, by which the generators of
// definitions name it. Endings with several plurals are refused.
func plural(kind string) (string, error) {
	name := strings.ToLower(kind)
	for _, ending := range []string{"x", "z", "ch", "sh", "f", "fe", "o", "data", "metrics", "info", "is", "us"} {
		if strings.HasSuffix(name, ending) {
			return "", fmt.Errorf("the resource of the kind %q is not known", kind)
		}
	}
	stem, ies := strings.CutSuffix(name, "y")
	switch {
	case strings.HasSuffix(name, "s"):
		return name + "es", nil
	case ies && !strings.ContainsAny(stem[len(stem)-1:], "aeiou"):
		return stem + "ies", nil
	}
	return name + "s", nil
}

// add adds the resources of a term.
func (s *Selection) add(t term) error {
	if len(t.kinds) == 0 {
		return &source.Unsupported{Path: t.at + ".resources.kinds", Found: "is missing"}
	}
	for _, k := range t.kinds {
		rule := admission.RuleWithOperations{Rule: admission.Rule{APIGroups: []string{k.group}, APIVersions: []string{k.version}, Resources: k.rules()}}
		for _, o := range t.operations {
			if builtin.MayHave(k.subresource, o, k.builtin || k.subresource == "") || k.subresource == every {
				rule.Operations = append(rule.Operations, admission.OperationType(o))
			}
		}
		if len(rule.Operations) == 0 {
			return &source.Unsupported{Path: t.at + ".resources.kinds", Found: k.resources + "/" + k.subresource + " at an operation that no request for it has"}
		}
		s.Resources = joined(s.Resources, rule)
		if k.guessed && !slices.Contains(s.Guessed, k.resources) {
			s.Guessed = append(s.Guessed, k.resources)
		}
	}
	return nil
}

// rules are the resources of a rule for a kind. A rule for all of them covers the containers that are
// added to a pod.
func (k kind) rules() []string {
	switch {
	case k.subresource != "":
		return []string{k.resources + "/" + k.subresource}
	case k.name == every && (k.group == every || k.group == ""):
		return []string{every, "pods/" + builtin.Ephemeral}
	}
	return []string{k.resources}
}

// joined adds a rule, to one that differs in the resources alone if there is one.
func joined(rules []admission.RuleWithOperations, rule admission.RuleWithOperations) []admission.RuleWithOperations {
	for i := range rules {
		have := &rules[i]
		if slices.Equal(have.APIGroups, rule.APIGroups) && slices.Equal(have.APIVersions, rule.APIVersions) && slices.Equal(have.Operations, rule.Operations) {
			for _, name := range rule.Resources {
				if !slices.Contains(have.Resources, name) {
					have.Resources = append(have.Resources, name)
				}
			}
			return rules
		}
	}
	return append(rules, rule)
}

// kindsOf returns the kinds of all terms.
func kindsOf(terms []term) []kind {
	var all []kind
	for _, t := range terms {
		for _, k := range t.kinds {
			if !slices.Contains(all, k) {
				all = append(all, k)
			}
		}
	}
	return all
}

// OfPods reports whether a filter names pods.
func OfPods(f match.Filter) bool {
	kinds, err := kindsFrom(f.Resources.Kinds, "")
	return err == nil && slices.ContainsFunc(kinds, func(k kind) bool { return k.name == "Pod" && k.subresource == "" })
}

// includes reports whether a kind has all objects of another.
func (k kind) includes(other kind) bool {
	return (k.group == every || k.group == other.group) && (k.version == every || k.version == other.version) &&
		(k.name == every || k.name == other.name) && k.subresource == other.subresource
}

// meets reports whether an object may be of both kinds. One of pods includes the containers that are added.
func (k kind) meets(other kind) bool {
	same := func(a, b string) bool { return a == b || a == every || b == every }
	later := func(a, b kind) bool { return a.subresource == "" && b.subresource == builtin.Ephemeral }
	return same(k.group, other.group) && same(k.name, other.name) &&
		(same(k.subresource, other.subresource) || later(k, other) || later(other, k))
}
