package kyverno

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// targets returns the kinds that a match may speak of. It says too much rather
// than too little: what it leaves out is never asked about.
func (b block) targets() []policy.Target {
	var list []policy.Target
	if !b.all {
		for _, f := range b.filters {
			list = joinTargets(list, f.targets())
		}
		return list
	}
	// Every filter must match, so that one alone says enough. The narrowest that
	// names kinds is taken, and one that confines to namespaces confines it.
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
	for _, t := range chosen.targets() {
		if t.Namespaces == nil {
			t = confined(t, namespaces)
		}
		list = append(list, t)
	}
	return list
}

func (f filter) targets() []policy.Target {
	kinds := f.kinds
	if len(kinds) == 0 {
		kinds = []kindSelector{{group: "*", version: "*", kind: "*", subresource: "*"}}
	}
	operations := asked(f.Resources.Operations)
	if len(f.Resources.Operations) > 0 && len(operations) == 0 {
		return nil // deletions alone
	}
	var list []policy.Target
	for _, k := range kinds {
		t := policy.Target{Group: k.group, Version: k.version, Kind: k.kind, Subresource: k.subresource, Operations: operations}
		list = append(list, confined(t, f.Resources.Namespaces))
		if k.kind != "*" && wildcard.Match(k.kind, "Pod") && k.subresource == "" { // a rule about pods sees containers that are added later
			t.Subresource = "ephemeralcontainers"
			list = append(list, confined(t, f.Resources.Namespaces))
		}
	}
	return list
}

// asked returns the operations that a rule looks at; it never looks at DELETE.
func asked(operations []string) []string {
	return slices.DeleteFunc(slices.Clone(operations), func(o string) bool { return o == "DELETE" })
}

// confined keeps a target in namespaces, unless its kind may be Namespace: those
// are matched by their own names; or a pattern fits what is in none.
func confined(t policy.Target, namespaces []string) policy.Target {
	if len(namespaces) > 0 && !wildcard.Match(t.Kind, "Namespace") && !wildcard.Any(namespaces, "") {
		t.Namespaces = namespaces
	}
	return t
}

// joinTargets adds those that are new.
func joinTargets(list, more []policy.Target) []policy.Target {
	for _, t := range more {
		if !slices.ContainsFunc(list, func(have policy.Target) bool { return sameTarget(have, t) }) {
			list = append(list, t)
		}
	}
	return list
}

func sameTarget(a, b policy.Target) bool {
	return a.Group == b.Group && a.Version == b.Version && a.Kind == b.Kind && a.Subresource == b.Subresource &&
		slices.Equal(a.Operations, b.Operations) && slices.Equal(a.Namespaces, b.Namespaces)
}
