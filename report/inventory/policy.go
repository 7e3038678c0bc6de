package inventory

import (
	"slices"
	"strings"
)

// Policies returns the results of each policy, by ID.
func (i *Inventory) Policies() []Policy {
	i.mu.RLock()
	defer i.mu.RUnlock()
	images := map[string]*Results{}
	for _, e := range i.images {
		for _, r := range e.results() {
			if images[r.Policy] == nil {
				images[r.Policy] = &Results{}
			}
			images[r.Policy].Add(r.Kind)
		}
	}
	all := make([]Policy, 0, i.policies.Len())
	i.policies.Each(i.now(), func(p Policy) {
		if now := images[p.ID]; now != nil {
			p.Images = *now
		}
		all = append(all, p)
	})
	slices.SortFunc(all, func(a, b Policy) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Facets are the values of the filters: up to 500 of each, in order.
type Facets struct {
	Namespaces []string `json:"namespaces"`
	Signers    []string `json:"signers"`
	Policies   []string `json:"policies"`
}

// Facets returns the values of the filters.
func (i *Inventory) Facets() Facets {
	i.mu.RLock()
	defer i.mu.RUnlock()
	namespaces, signers, policies := map[string]struct{}{}, map[string]struct{}{}, map[string]struct{}{}
	for at := range i.places {
		if at.namespace != "" {
			namespaces[at.namespace] = struct{}{}
		}
	}
	for _, e := range i.images {
		for _, s := range e.image.Signers {
			signers[s.Name] = struct{}{}
		}
	}
	for id := range i.policies.IDs() {
		policies[id] = struct{}{}
	}
	return Facets{firstOf(namespaces, maxFacets), firstOf(signers, maxFacets), firstOf(policies, maxFacets)}
}
