package scan

import (
	"cmp"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/set"
)

// pods is the target of policies that match images, whichever workload runs them.
func pods() policy.Target { return policy.Target{Version: "v1", Kind: "Pod"} }

// targetsOf returns the targets of a policy's rules that a scan evaluates, with or without mutation
// rules. A policy without kinds, such as one from flags, matches the images of pods.
func targetsOf(p *policy.Policy, mutations bool) []policy.Target {
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
	for _, m := range p.Mutations {
		if mutations {
			targets = append(targets, m.Targets()...)
		}
	}
	return slices.DeleteFunc(targets, func(t policy.Target) bool { return !mayMean(t) })
}

// kindsOf returns the kinds that policies match, in the order of evaluation: pods first, and the
// same objects never in two versions unless policies name both. For an Override, which matches
// images in any workload, they are the pods.
func kindsOf(set *set.Set, served []Kind, mutations bool) []Kind {
	var targets []policy.Target
	for _, p := range set.Policies() {
		targets = append(targets, targetsOf(p, mutations)...)
	}
	if len(set.Overrides()) > 0 {
		targets = append(targets, pods())
	}
	return KindsOf(targets, served)
}

// KindsOf returns the kinds that targets match, of those that are served, in a fixed order: the same objects never in
// two versions unless targets name both.
//
// A version that a policy names is listed first: rules that name it cannot be evaluated in
// another, and rules that name none can in any.
func KindsOf(targets []policy.Target, served []Kind) []Kind {
	var found []Kind
	byVersion := slices.SortedStableFunc(slices.Values(targets), func(a, b policy.Target) int { return cmp.Compare(patterned(a), patterned(b)) })
	for _, t := range byVersion {
		for _, k := range served { // of each resource, the version that is preferred comes first
			if means(t, k) && !slices.ContainsFunc(found, func(f Kind) bool { return f.sameObjects(k) && means(t, f) }) {
				found = append(found, k)
			}
		}
	}
	slices.SortFunc(found, order)
	return found
}

// sameObjects reports whether two kinds are versions of one, whose objects an API server has in both.
func (k Kind) sameObjects(other Kind) bool {
	return !k.IsOfFiles && k.Group == other.Group && k.Resource == other.Resource || k == other
}

// means reports whether a target may match the objects of a kind. A pattern for kinds does not
// match kinds that clusters write continuously, such as events.
func means(t policy.Target, k Kind) bool {
	return wildcard.Match(t.Kind, k.Kind) && wildcard.Match(t.Group, k.Group) && (k.IsOfFiles || wildcard.Match(t.Version, k.Version)) &&
		(!wildcard.Contains(t.Kind) || !restless(k))
}

func patterned(t policy.Target) int {
	if wildcard.Contains(t.Version) {
		return 1
	}
	return 0
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

// order is the fixed order of kinds in a round.
func order(a, b Kind) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
}

func rank(k Kind) int {
	if k.Group == "" && k.Kind == "Pod" {
		return 0
	}
	return 1
}

// changed returns the policies that one set has and the other has not, or in another version.
func changed(before, now *set.Set) []*policy.Policy {
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

// resourceOf names the resource of a kind, as a request does.
func resourceOf(kind Kind) map[string]any {
	return map[string]any{"group": kind.Group, "version": kind.Version, "resource": kind.Resource}
}
