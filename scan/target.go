package scan

import (
	"cmp"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// pods are what is meant where images are spoken of, whatever runs them.
func pods() policy.Target { return policy.Target{Version: "v1", Kind: "Pod"} }

// targetsOf returns what the rules of a policy that a scan asks speak of. A policy that
// names no kinds, as one of flags, speaks of the images of pods.
func targetsOf(p *policy.Policy) []policy.Target {
	var targets []policy.Target
	for _, r := range p.Rules {
		if policy.OnlyDocuments(r) {
			continue
		}
		selective, ok := r.(policy.Selective)
		switch {
		case ok && len(selective.Targets()) > 0:
			targets = append(targets, selective.Targets()...)
		case len(p.Targets) > 0:
			targets = append(targets, p.Targets...)
		default:
			targets = append(targets, pods())
		}
	}
	for _, v := range p.Validations {
		if !policy.OnlyDocuments(v) {
			targets = append(targets, v.Targets()...)
		}
	}
	return slices.DeleteFunc(targets, func(t policy.Target) bool { return !mayMean(t) })
}

// kindsOf returns the kinds that policies speak of, in the order in which they are
// looked at: pods first, and never the same objects in two versions unless policies name
// both. Of an Override, which speaks of images whatever runs them, they are the pods.
func kindsOf(set *policy.Set, served []Kind) []Kind {
	var targets []policy.Target
	for _, p := range set.Policies() {
		targets = append(targets, targetsOf(p)...)
	}
	if len(set.Overrides()) > 0 {
		targets = append(targets, pods())
	}
	return kindsMeant(targets, served)
}

func kindsMeant(targets []policy.Target, served []Kind) []Kind {
	var found []Kind
	for _, t := range targets {
		var meant []Kind // by this target: of each resource, the version that is preferred
		for _, k := range served {
			if !means(t, k) || slices.ContainsFunc(meant, func(m Kind) bool { return m.Group == k.Group && m.Resource == k.Resource }) {
				continue
			}
			meant = append(meant, k)
		}
		for _, k := range meant {
			if !slices.Contains(found, k) {
				found = append(found, k)
			}
		}
	}
	slices.SortFunc(found, order)
	return found
}

// means reports whether a target may mean the objects of a kind. A pattern for kinds does
// not mean what clusters write about themselves without end.
func means(t policy.Target, k Kind) bool {
	return wildcard.Match(t.Kind, k.Kind) && wildcard.Match(t.Group, k.Group) && wildcard.Match(t.Version, k.Version) &&
		(!wildcard.Contains(t.Kind) || !restless(k))
}

func restless(k Kind) bool {
	switch k.Group {
	case "wgpolicyk8s.io", "openreports.io", "reports.kyverno.io", "events.k8s.io", "coordination.k8s.io", "metrics.k8s.io":
		return true
	case "":
		return k.Kind == "Event" || k.Kind == "ComponentStatus"
	}
	return false
}

// order is the order of kinds in a round, the same in each.
func order(a, b Kind) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Version, b.Version))
}

func rank(k Kind) int {
	if k.Group == "" && k.Kind == "Pod" {
		return 0
	}
	return 1
}

// changed returns the policies that are in one set and not, or otherwise, in the other.
func changed(before, now *policy.Set) []*policy.Policy {
	hashes := map[string]string{}
	for _, p := range before.Policies() {
		hashes[p.ID()] = p.Form()
	}
	var all []*policy.Policy
	for _, p := range now.Policies() {
		if hashes[p.ID()] != p.Form() {
			all = append(all, p)
		} else {
			delete(hashes, p.ID())
		}
	}
	for _, p := range before.Policies() {
		if _, gone := hashes[p.ID()]; gone {
			all = append(all, p)
		}
	}
	return all
}
