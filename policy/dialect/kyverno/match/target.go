package match

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	labels "github.com/quaymaster/quaymaster/policy/internal/requirement"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Targets returns the kinds that a block may match. It errs on the side of too many: the rule is
// never evaluated for other kinds.
func (b Block) Targets() []policy.Target { return b.targets(looks{never: "DELETE"}) }

// TargetsAt is Targets for an object rule with these operations as the default of match; empty
// means CREATE and UPDATE.
func (b Block) TargetsAt(operations []string) []policy.Target {
	return b.targets(looks{usual: operations})
}

// looks are the operations that a rule is evaluated for.
type looks struct {
	usual []string // where its match names none
	never string
}

func (b Block) targets(at looks) []policy.Target {
	var list []policy.Target
	if !b.all {
		for _, f := range b.filters {
			if f.empty {
				continue
			}
			list = JoinTargets(list, f.targets(at))
		}
		return list
	}
	// Every filter must match, so that one alone suffices. The narrowest filter that names kinds
	// is used, and one with namespaces restricts it.
	var chosen *filter
	var namespaces []string
	for i := range b.filters {
		f := &b.filters[i]
		if len(f.kinds) > 0 && (chosen == nil || len(f.kinds) < len(chosen.kinds)) {
			chosen = f
		}
		if namespaces == nil {
			namespaces = f.Resources.Namespaces
		}
	}
	if chosen == nil {
		return []policy.Target{confined(policy.Target{Group: "*", Version: "*", Kind: "*", Subresource: "*"}, namespaces)}
	}
	for _, t := range chosen.targets(at) {
		if t.Namespaces == nil {
			t = confined(t, namespaces)
		}
		list = append(list, t)
	}
	return list
}

func (f filter) targets(at looks) []policy.Target {
	kinds := f.kinds
	if len(kinds) == 0 {
		kinds = []kindSelector{{group: "*", version: "*", kind: "*", subresource: "*"}}
	}
	operations := at.usual
	// One that is misspelt, in a rule that is broken, may be any.
	if named := f.Resources.Operations; len(named) > 0 && !slices.ContainsFunc(named, func(o string) bool { return !isOperation(o) }) {
		operations = slices.DeleteFunc(slices.Clone(named), func(o string) bool { return o == at.never })
		if len(operations) == 0 {
			return nil // deletions alone, for which the rule is not evaluated
		}
	}
	var list []policy.Target
	for _, k := range kinds {
		t := policy.Target{Group: k.group, Version: k.version, Kind: k.kind, Subresource: k.subresource, Operations: operations}
		if builtin.IsNamespaced(k.group, k.kind) { // of others the selector may select cluster-scoped objects
			t.Labelled = f.Resources.NamespaceSelector.namespaces()
		}
		list = append(list, confined(t, f.Resources.Namespaces))
		if wildcard.Match(k.kind, "Pod") && k.subresource == "" { // a rule about pods sees containers that are added later
			t.Subresource = "ephemeralcontainers"
			list = append(list, confined(t, f.Resources.Namespaces))
		}
	}
	return list
}

// namespaces returns the names of the only namespaces that the selector selects, by the label that
// the API server sets to the name; nil for any.
func (s *Selector) namespaces() []string {
	if s == nil {
		return nil
	}
	var list []labels.Requirement
	for key, value := range s.MatchLabels {
		list = append(list, labels.Requirement{Key: key, Operator: "In", Values: []string{value}})
	}
	for _, e := range s.MatchExpressions {
		list = append(list, labels.Requirement{Key: e.Key, Operator: e.Operator, Values: e.Values})
	}
	return labels.Namespaces(list)
}

// confined restricts a target to namespaces, unless its kind may be Namespace, which is matched
// by its own name, or a pattern matches cluster-scoped objects.
func confined(t policy.Target, namespaces []string) policy.Target {
	misspelt := func(n string) bool { return CheckNamespace(n, "") != nil } // in a rule that is broken
	if len(namespaces) > 0 && !wildcard.Match(t.Kind, "Namespace") && !wildcard.Any(namespaces, "") && !slices.ContainsFunc(namespaces, misspelt) {
		t.Namespaces = namespaces
	}
	return t
}

// JoinTargets adds those that are new.
func JoinTargets(list, more []policy.Target) []policy.Target {
	for _, t := range more {
		if !slices.ContainsFunc(list, func(have policy.Target) bool { return sameTarget(have, t) }) {
			list = append(list, t)
		}
	}
	return list
}

func sameTarget(a, b policy.Target) bool {
	return a.Group == b.Group && a.Version == b.Version && a.Kind == b.Kind && a.Subresource == b.Subresource &&
		slices.Equal(a.Operations, b.Operations) && slices.Equal(a.Namespaces, b.Namespaces) && slices.Equal(a.Labelled, b.Labelled)
}
