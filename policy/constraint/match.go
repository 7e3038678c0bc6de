package constraint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/policy"
)

// ephemeral is the subresource by which containers are added to a pod that runs.
const ephemeral = "ephemeralcontainers"

// kindsOf reads one entry of resources: a name, name/subresource, or * for either.
func kindsOf(text string, groups []string, resources Resources) ([]kind, error) {
	name, sub, _ := strings.Cut(text, "/")
	switch {
	case name == "" || strings.HasSuffix(text, "/") || strings.Contains(sub, "/"):
		return nil, fmt.Errorf("%q: want a resource, such as pods or pods/ephemeralcontainers", text)
	case name == "*":
		var list []kind
		for _, group := range groups {
			list = append(list, kind{group: group, name: "*", subresource: sub})
		}
		return list, nil
	case strings.ToLower(name) != name:
		return nil, fmt.Errorf("%q is no resource: resources are the plural, lower-case names of kinds, such as pods", name)
	}
	var list []kind
	for _, r := range named(resources, groups, name) {
		list = append(list, kind{group: r.Group, name: r.Kind, subresource: sub, cluster: r.Cluster})
	}
	if len(list) == 0 {
		return nil, unserved{name: name, groups: groups}
	}
	return list, nil
}

// is compares the kind with the subject's. A rule about pods sees containers that
// are added to them later, which the API server says of pods/ephemeralcontainers.
func (k kind) is(s *policy.Subject, scope admission.ScopeType) bool {
	if k.unserved || k.name != "*" && k.name != s.Kind || k.group != "*" && k.group != s.Group {
		return false
	}
	sub := s.Subresource
	if sub == ephemeral && k.subresource == "" && k.name != "*" {
		sub = ""
	}
	if k.subresource != "*" && k.subresource != sub && (!s.Bare || k.subresource != ephemeral) {
		return false
	}
	if scope == admission.AllScopes {
		return true
	}
	cluster := k.cluster
	if k.name == "*" {
		cluster = s.Namespace == ""
		if of, known := clusterScoped(s.Group, s.Kind); known {
			cluster = of
		}
	}
	return cluster == (scope == admission.ClusterScope)
}

// isNamed compares names. The API server makes up the rest of a generated name: a
// rule means what may get its name, and an exclusion means what has it.
func isNamed(s *policy.Subject, name string, excluding bool) bool {
	if s.Name != "" || excluding {
		return s.Name == name
	}
	metadata, _ := s.Object.Map()["metadata"].(map[string]any)
	generated, _ := metadata["generateName"].(string)
	return generated != "" && strings.HasPrefix(generated, name)
}

// matchesNamespace: what is in no namespace is selected, and a Namespace by its own
// labels.
func (c *Constraint) matchesNamespace(s *policy.Subject) (bool, error) {
	switch {
	case c.namespace == nil:
		return true, nil
	case s.Group == "" && s.Kind == "Namespace":
		return c.namespace.Matches(labels.Set(labelsOf(s.Object.Map()))), nil
	case s.Bare && s.Namespace == "":
		return false, lacking("the object's namespace")
	case s.NamespaceKnown:
		return c.namespace.Matches(labels.Set(s.NamespaceLabels)), nil
	case s.Namespace == "":
		if cluster, known := clusterScoped(s.Group, s.Kind); cluster || !known {
			return true, nil
		}
	}
	return false, errNamespaceUnknown
}

// matchesObject: the new state or the old one is enough, so that a label which is
// taken away does not take the policy away.
func (c *Constraint) matchesObject(s *policy.Subject) (bool, error) {
	switch {
	case c.object == nil:
		return true, nil
	case s.Bare:
		return false, lacking("the object's labels")
	}
	return slices.ContainsFunc([]policy.Content{s.Object, s.OldObject}, func(o policy.Content) bool {
		return !o.IsZero() && c.object.Matches(labels.Set(labelsOf(o.Map())))
	}), nil
}

func labelsOf(object map[string]any) map[string]string {
	metadata, _ := object["metadata"].(map[string]any)
	written, _ := metadata["labels"].(map[string]any)
	set := make(map[string]string, len(written))
	for key, value := range written {
		if text, ok := value.(string); ok {
			set[key] = text
		}
	}
	return set
}

// Targets returns the kinds of objects that the constraint may speak of, by the
// operations that can bring images. It says too much rather than too little.
func (c *Constraint) Targets() []policy.Target { return targetsOf(c.rules, c.exact, (*rule).bringing) }

// TargetsOfAll is Targets by every operation.
func (c *Constraint) TargetsOfAll() []policy.Target { return targetsOf(c.rules, c.exact, (*rule).all) }

func targetsOf(rules []rule, exact bool, asked func(*rule) ([]string, bool)) []policy.Target {
	var list []policy.Target
	for i := range rules {
		r := &rules[i]
		operations, some := asked(r)
		if !some {
			continue
		}
		for _, k := range r.kinds {
			for _, version := range r.askedVersions(exact) {
				t := policy.Target{Group: k.group, Version: version, Kind: k.name, Subresource: k.subresource, Operations: operations, Unserved: k.unserved}
				list = add(list, t)
				if k.name == "Pod" && k.subresource == "" {
					t.Subresource = ephemeral
					list = add(list, t)
				}
			}
		}
	}
	return list
}

// askedVersions: by default an object in another version is an equivalent one.
func (r *rule) askedVersions(exact bool) []string {
	if exact {
		return r.versions
	}
	return []string{"*"}
}

// bringing returns which of CREATE and UPDATE the rule names; nil means both.
func (r *rule) bringing() (operations []string, some bool) {
	creates, updates := has(r.operations, admission.Create), has(r.operations, admission.Update)
	switch {
	case creates && updates:
		return nil, true
	case creates:
		return []string{string(admission.Create)}, true
	case updates:
		return []string{string(admission.Update)}, true
	}
	return nil, false
}

// all returns the operations that the rule names; nil means CREATE and UPDATE.
func (r *rule) all() (operations []string, some bool) {
	operations, _ = r.bringing()
	deletes, connects := has(r.operations, admission.Delete), has(r.operations, admission.Connect)
	if !deletes && !connects {
		return operations, true
	}
	if operations == nil && has(r.operations, admission.Create) {
		operations = []string{string(admission.Create), string(admission.Update)}
	}
	if deletes {
		operations = append(operations, string(admission.Delete))
	}
	if connects {
		operations = append(operations, string(admission.Connect))
	}
	return operations, true
}

func add(list []policy.Target, t policy.Target) []policy.Target {
	same := func(have policy.Target) bool {
		return have.Group == t.Group && have.Version == t.Version && have.Kind == t.Kind && have.Subresource == t.Subresource && have.Unserved == t.Unserved &&
			slices.Equal(have.Operations, t.Operations)
	}
	if slices.ContainsFunc(list, same) {
		return list
	}
	return append(list, t)
}

// Rough returns the targets of a constraint that does not compile, as far as it can
// be read, by the operations that can bring images. False means that it cannot be.
func Rough(doc *admission.MatchResources, resources Resources) ([]policy.Target, bool) {
	return roughly(doc, resources, (*rule).bringing)
}

// RoughOfAll is Rough by every operation.
func RoughOfAll(doc *admission.MatchResources, resources Resources) ([]policy.Target, bool) {
	return roughly(doc, resources, (*rule).all)
}

func roughly(doc *admission.MatchResources, resources Resources, asked func(*rule) ([]string, bool)) ([]policy.Target, bool) {
	if doc == nil || len(doc.ResourceRules) == 0 || len(doc.ResourceRules) > maxRules {
		return nil, false
	}
	var list []policy.Target
	for i := range doc.ResourceRules {
		d := doc.ResourceRules[i]
		r, err := compileRule(&d, "", resources)
		if err != nil && !onlyUnknown(err) {
			return nil, false
		}
		list = append(list, targetsOf([]rule{r}, false, asked)...)
	}
	return list, true
}

// onlyUnknown reports whether all that is wrong is that kinds are not known.
func onlyUnknown(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		wrong, ok := errors.AsType[*FieldError](err)
		return ok && strings.Contains(wrong.Path, ".resources[")
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !onlyUnknown(e) })
}
