package constraint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
)

// ephemeral is the subresource by which containers are added to a running pod.
const ephemeral = builtin.Ephemeral

// lacking is the error where only images are known.
func lacking(what string) error {
	return fmt.Errorf("only images and their namespace are known here, and the policy selects by %s; the admission webhook knows the whole object", what)
}

// Matches reports whether the constraint matches the subject. An error means that the
// result is indeterminate: it depends on something that is not known. A part that is
// certain decides first.
func (c *Constraint) Matches(s *policy.Subject) (bool, error) {
	return logic.All(
		func() logic.Value { return c.matchesResource(s) },
		func() logic.Value { return c.matchesNamespace(s) },
		func() logic.Value { return c.matchesObject(s) },
	).Result()
}

// action is the part of a request that rules compare besides the object.
type action struct {
	operation   admission.OperationType
	subresource string
}

// matchesResource compares the rules and the exclusions. Of a bare subject the operation
// is not known, nor whether its container is added later: a rule that matches one of these
// cases matches, and an exclusion counts only if it covers all that are matched.
func (c *Constraint) matchesResource(s *policy.Subject) logic.Value {
	if !s.Bare {
		_, applies := c.appliesTo(s, action{admission.OperationType(s.Operation), s.Subresource})
		return applies
	}
	var cases []logic.Value
	for _, a := range []action{{admission.Create, s.Subresource}, {admission.Update, s.Subresource}, {admission.Update, ephemeral}} {
		if matched, applies := c.appliesTo(s, a); !matched.False() {
			cases = append(cases, applies)
		}
	}
	whole := func(v logic.Value) logic.Value { return v }
	some, every := logic.Any(cases, whole), logic.Every(cases, whole)
	if some.True() && every.False() {
		return logic.Indeterminate(lacking("the operation"))
	}
	return some
}

// appliesTo reports whether a rule matches, and whether one does and no exclusion.
//
// A rule for pods also covers the containers that are added to them later, which are a
// subresource of their own. That widens the match and so it must not widen an exclusion:
// an exclusion of pods covers these containers only where the match does by the same
// reading.
func (c *Constraint) appliesTo(s *policy.Subject, a action) (matched, applies logic.Value) {
	if c.native {
		applies = c.appliesNatively(s, a)
		return applies, applies
	}
	exact, excluded := c.anyOf(c.rules, s, a, false), func() logic.Value { return c.anyOf(c.excluded, s, a, true).Not() }
	if a.subresource != ephemeral || s.Kind != "Pod" || s.Group != "" {
		return exact, logic.All(func() logic.Value { return exact }, excluded)
	}
	pods := slices.DeleteFunc(slices.Clone(c.rules), func(r rule) bool { return !r.namesPods() })
	whole := action{a.operation, ""}
	widened := c.anyOf(pods, s, whole, false)
	readings := []logic.Value{exact, logic.All(
		func() logic.Value { return widened },
		func() logic.Value { return c.anyOf(c.excluded, s, whole, true).Not() },
	)}
	either := func(values ...logic.Value) logic.Value {
		return logic.Any(values, func(v logic.Value) logic.Value { return v })
	}
	return either(exact, widened), logic.All(func() logic.Value { return either(readings...) }, excluded)
}

// namesPods reports whether pods are named, not by a wildcard.
func (r *rule) namesPods() bool {
	return slices.ContainsFunc(r.kinds, func(k kind) bool { return k.name == "Pod" && k.subresource == "" })
}

func (c *Constraint) anyOf(rules []rule, s *policy.Subject, a action, excluding bool) logic.Value {
	result := logic.Is(false)
	for i := range rules {
		v := c.matches(&rules[i], s, a, excluding)
		if v.True() {
			return v
		}
		result = logic.Prefer(result, v)
	}
	return result
}

// matches compares a rule. Exclusions are read narrowly: whatever an exclusion does not
// name for certain is not excluded.
func (c *Constraint) matches(r *rule, s *policy.Subject, a action, excluding bool) logic.Value {
	if !has(r.operations, a.operation) {
		return logic.Is(false)
	}
	return logic.All(
		func() logic.Value {
			return logic.Any(r.kinds, func(k kind) logic.Value {
				return logic.All(
					func() logic.Value { return c.matchesKind(&k, r.scope, s, a.subresource) },
					func() logic.Value { return k.matchesGuess(s, excluding) },
				)
			})
		},
		func() logic.Value { return c.matchesVersion(r, s, excluding) },
		func() logic.Value { return r.matchesName(s, excluding) },
	)
}

func has[T ~string](list []T, item T) bool {
	return slices.Contains(list, item) || slices.Contains(list, "*")
}

func (c *Constraint) matchesKind(k *kind, scope admission.ScopeType, s *policy.Subject, subresource string) logic.Value {
	if k.unserved || k.subresource != "*" && k.subresource != subresource {
		return logic.Is(false)
	}
	if subresource != "" && s.IsBody() {
		return logic.All(func() logic.Value { return k.matchesParent(s) }, func() logic.Value { return c.inScope(k, scope, s) })
	}
	if k.name != "*" && !k.guessed && k.name != s.Kind {
		return logic.Is(false)
	}
	inScope := c.inScope(k, scope, s)
	switch {
	case k.group == "*" || k.group == s.Group:
		return inScope
	case !c.exact && k.name == "Event" && oneStorage(k.group, s.Group):
		return logic.All(func() logic.Value { return inScope }, func() logic.Value {
			return logic.Indeterminate(fmt.Errorf("the policy names events of the group %q, and the object is an equivalent one of %q, which is not converted here",
				k.group, s.Group))
		})
	}
	return logic.Is(false)
}

// matchesParent compares the resource of a request with a body of another kind than the object.
// Without the resource only a rule for every kind matches for certain.
func (k *kind) matchesParent(s *policy.Subject) logic.Value {
	of, known := s.Resource()
	switch {
	case known:
		return logic.Is((k.group == "*" || k.group == of.Group) && (k.name == "*" || k.resource == of.Name))
	case k.group == "*" && k.name == "*":
		return logic.Is(true)
	}
	return logic.Indeterminate(fmt.Errorf("the policy selects the %s of certain resources, and the request does not name the resource of the %s",
		s.Subresource, s.Subresource))
}

// oneStorage: the API server stores events of both groups in one place, so that under
// matchPolicy Equivalent a rule for one group covers the other.
func oneStorage(a, b string) bool {
	groups := []string{"", "events.k8s.io"}
	return slices.Contains(groups, a) && slices.Contains(groups, b)
}

// inScope compares the scope. Only a request shows by its empty namespace that an object
// is in none: a file may have left it out.
func (c *Constraint) inScope(k *kind, scope admission.ScopeType, s *policy.Subject) logic.Value {
	if scope == admission.AllScopes {
		return logic.Is(true)
	}
	cluster, known := k.cluster, true
	if k.name == "*" || k.guessed || k.hinted {
		cluster, known = c.clusterScoped(s)
	}
	if !known {
		return logic.Indeterminate(fmt.Errorf("the policy selects by scope, and whether objects of the kind %s are in namespaces is not known", s.Kind))
	}
	return logic.Is(cluster == (scope == admission.ClusterScope))
}

// clusterScoped reports whether the subject is in no namespace, as far as is known.
func (c *Constraint) clusterScoped(s *policy.Subject) (cluster, known bool) {
	cluster, known = clusterScoped(s.Group, s.Kind)
	if known {
		return cluster, true
	}
	if s.Namespace != "" || s.User.Name != "" || len(s.User.Groups) > 0 {
		return s.Namespace == "", true
	}
	if c.resources == nil {
		return false, false
	}
	for _, r := range c.resources.Named(s.Group, NameOf(s.Kind)) {
		if r.Kind == s.Kind {
			return r.Cluster, true
		}
	}
	return false, false
}

// matchesGuess compares a resource of which no kind is known. A request names its resource.
// Without one the name is guessed, and a definition may choose another: then the kind that
// suggests the name is matched, and never excluded for certain.
func (k *kind) matchesGuess(s *policy.Subject, excluding bool) logic.Value {
	if !k.guessed {
		return logic.Is(true)
	}
	if of, known := s.Resource(); known {
		return logic.Is(of.Name == k.resource)
	}
	if r, ok := builtin.Find(s.Group, s.Kind); ok {
		return logic.Is(r.Name == k.resource)
	}
	switch suggested, may := k.suggestedBy(s.Kind); {
	case suggested && !excluding:
		return logic.Is(true)
	case suggested || may:
		return logic.Indeterminate(fmt.Errorf(
			"the policy names the resource %s, and whether objects of the kind %s are that is not known; give the CustomResourceDefinition with the objects or with --resource", k.resource, s.Kind))
	}
	return logic.Is(false)
}

// matchesVersion: under matchPolicy Equivalent a rule covers an object in another version,
// which the API server converts to one that the rule names, if it serves one. An object that
// is in none of these is not converted.
func (c *Constraint) matchesVersion(r *rule, s *policy.Subject, excluding bool) logic.Value {
	version, known := s.Version, true
	if s.IsBody() {
		of, _ := s.Resource()
		version, known = of.Version, of.Version != ""
	}
	switch {
	case has(r.versions, version):
		return logic.Is(true)
	case !known:
		return logic.Indeterminate(errors.New("the policy selects by version, and the version of the resource is not known"))
	case c.exact:
		return logic.Is(false)
	}
	unconverted := s.Unconverted(r.versions)
	switch {
	case unconverted == nil:
		return logic.Is(false)
	case excluding:
		return logic.Indeterminate(fmt.Errorf("the policy excludes the versions %s, and whether one of them is equivalent to %s is not known",
			strings.Join(r.versions, ", "), version))
	}
	return logic.Indeterminate(unconverted)
}

// matchesName compares names. The API server completes a generated name after the mutating
// webhooks: until then it is indeterminate whether a rule covers a name that may follow, and an
// exclusion covers only a name that is there.
func (r *rule) matchesName(s *policy.Subject, excluding bool) logic.Value {
	if len(r.names) == 0 {
		return logic.Is(true)
	}
	if s.Bare {
		return logic.Indeterminate(lacking("the object's name"))
	}
	name, known := nameOf(s)
	switch {
	case name != "":
		return logic.Is(slices.Contains(r.names, name))
	case !known:
		return logic.Indeterminate(errors.New("the policy selects by the object's name, and it is not known"))
	case excluding:
		return logic.Is(false)
	}
	generated := metadataOf(s.Object)["generateName"]
	text, _ := generated.(string)
	if slices.ContainsFunc(r.names, func(name string) bool { return builtin.MayBeGenerated(name, text) }) {
		return logic.Indeterminate(fmt.Errorf("the policy selects by the object's name, which is yet to be generated from %s", text))
	}
	return logic.Is(false)
}

// nameOf returns the object's name; of a deletion of a collection only the object has it.
// An empty one that is known is yet to be generated.
func nameOf(s *policy.Subject) (name string, known bool) {
	if s.Name != "" {
		return s.Name, true
	}
	for _, object := range []policy.Content{s.OldObject, s.Object} {
		if name, ok := metadataOf(object)["name"].(string); ok && name != "" && isOwn(s, object) {
			return name, true
		}
	}
	return "", s.Operation == string(admission.Create) && s.Subresource == "" && !s.Object.IsZero()
}
