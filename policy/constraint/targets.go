package constraint

import (
	"errors"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/requirement"
)

// Targets returns the kinds of objects that the constraint may match, for the operations that can
// add images. It errs on the side of too many.
func (c *Constraint) Targets() []policy.Target {
	return c.labelled(targetsOf(c.rules, (*rule).bringing))
}

// TargetsOfAll is Targets by every operation.
func (c *Constraint) TargetsOfAll() []policy.Target {
	return c.labelled(targetsOf(c.rules, (*rule).all))
}

// Kinds is TargetsOfAll without kinds that a definition may bring for a resource of which one
// is known.
func (c *Constraint) Kinds() []policy.Target {
	rules := slices.Clone(c.rules)
	for i, r := range rules {
		rules[i].kinds = slices.DeleteFunc(slices.Clone(r.kinds), func(k kind) bool { return k.beside })
	}
	return c.labelled(targetsOf(rules, (*rule).all))
}

// labelled adds the namespaces that the selector names to the targets of namespaced kinds. It
// selects cluster-scoped objects in any case.
func (c *Constraint) labelled(targets []policy.Target) []policy.Target {
	for i := range targets {
		if builtin.IsNamespaced(targets[i].Group, targets[i].Kind) {
			targets[i].Labelled = requirement.Namespaces(c.namespaceRequirements)
		}
	}
	return targets
}

func targetsOf(rules []rule, asked func(*rule) ([]string, bool)) []policy.Target {
	var list []policy.Target
	for i := range rules {
		r := &rules[i]
		operations, some := asked(r)
		if !some {
			continue
		}
		for _, k := range r.kinds {
			for _, version := range r.askedVersions() {
				t := policy.Target{Group: k.group, Version: version, Kind: k.name, Subresource: k.subresource, Operations: operations, Unserved: k.unserved}
				if k.guessed {
					t.Kind, t.Resource = "*", k.resource
				}
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

// askedVersions are those that the rule names: to one of them the API server converts an
// object in another version.
func (r *rule) askedVersions() []string {
	if slices.Contains(r.versions, "*") {
		return []string{"*"}
	}
	return r.versions
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

// add keeps one target for several resources without a known kind, and for every kind beside them.
func add(list []policy.Target, t policy.Target) []policy.Target {
	same := func(have policy.Target) bool {
		return have.Group == t.Group && have.Version == t.Version && have.Kind == t.Kind && have.Subresource == t.Subresource &&
			have.Unserved == t.Unserved && slices.Equal(have.Operations, t.Operations)
	}
	i := slices.IndexFunc(list, same)
	if i < 0 {
		return append(list, t)
	}
	if t.Resource == "" {
		list[i].Resource = ""
	}
	return list
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
		r, err := compileRule(readable(doc.ResourceRules[i]), "", resources)
		if err != nil && !onlyUnknown(err) || len(r.kinds) == 0 {
			return nil, false
		}
		r.kinds = slices.DeleteFunc(r.kinds, func(k kind) bool { return k.beside })
		for _, k := range r.kinds {
			of := r
			of.kinds = []kind{k}
			list = append(list, targetsOf([]rule{of}, asked)...)
		}
	}
	if len(list) > 0 && !isLater(resources) && !slices.ContainsFunc(list, func(t policy.Target) bool { return !t.Unserved }) {
		return nil, false // misspelt: what it means cannot be read
	}
	return list, true
}

// MayBeOf reports whether a subject of a target's group and subresource may be of its resource, as
// far as the request or the kind shows it: a target of a broken policy knows the resource alone
// where no kind is known, and a body of a subresource is of another kind than the object.
func MayBeOf(t policy.Target, s *policy.Subject) bool {
	k := kind{resource: t.Resource, guessed: true}
	if r, ok := builtin.Find(t.Group, t.Kind); ok && s.IsBody() {
		k.resource = r.Name
	}
	of, known := s.Resource()
	switch {
	case k.resource == "" || s.IsBody() && !known:
		return true
	case s.IsBody():
		return of.Name == k.resource
	}
	return !k.matchesGuess(s, false).False()
}

// readable returns a rule in which each misspelt field counts as its widest value, and which is
// about every version, since it is evaluated in none.
func readable(doc admission.NamedRuleWithOperations) *admission.NamedRuleWithOperations {
	doc.Resources = slices.Clone(doc.Resources)
	for i, text := range doc.Resources {
		doc.Resources[i] = strings.ToLower(text)
	}
	if slices.ContainsFunc(doc.Operations, func(o admission.OperationType) bool { return !isOperation(o) }) || len(doc.Operations) == 0 {
		doc.Operations = []admission.OperationType{admission.OperationAll}
	}
	doc.APIVersions, doc.Scope = []string{"*"}, nil
	return &doc
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
