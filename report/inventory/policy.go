package inventory

import (
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

// policyCount holds the results of one policy since the process started.
type policyCount struct {
	about     Policy // without the counts of images and rules
	rules     map[string]*Results
	ruleNames []string // in the order of their first occurrence
}

// countPolicies counts the results of a record. The caller holds the lock.
func (i *Inventory) countPolicies(o report.Occasion, r report.Record) {
	for n := range r.Images {
		for k := range r.Images[n].Decisions {
			d := &r.Images[n].Decisions[k]
			i.countPolicy(o, d.Policy, d.Rule, verdict.OfRule(d))
		}
	}
	for n := range r.Rules {
		rule := &r.Rules[n]
		switch {
		case rule.Error != "":
			i.countPolicy(o, rule.Policy, rule.Rule, verdict.Error)
		case rule.Kind != policy.ImageRule && rule.Skipped == "":
			i.countPolicy(o, rule.Policy, rule.Rule, verdict.OfResult(rule.Result, rule.Action == policy.Warn))
		}
	}
}

func (i *Inventory) countPolicy(o report.Occasion, p report.Policy, rule string, told verdict.Kind) {
	id := p.String()
	known := i.policies[id]
	if known == nil {
		if len(i.policies) >= maxPolicies || p.Name == "" {
			return
		}
		known = &policyCount{rules: map[string]*Results{}, about: Policy{
			ID: cut(id, maxName), Kind: cut(p.Kind, maxName), Namespace: cut(p.Namespace, maxName), Name: cut(p.Name, maxName),
		}}
		i.policies[known.about.ID] = known
	}
	known.about.Hash, known.about.LastSeen = cut(p.Hash, maxName), o.Time.UTC()
	if told == verdict.Fail {
		known.about.LastFail = o.Time.UTC()
	}
	if o.Process == report.ProcessScan {
		known.about.Scan.Add(told)
	} else {
		known.about.Admission.Add(told)
	}
	rule = cut(rule, maxName)
	results := known.rules[rule]
	if results == nil {
		if len(known.ruleNames) == maxRules {
			return
		}
		results = &Results{}
		known.rules[rule] = results
		known.ruleNames = append(known.ruleNames, rule)
	}
	results.Add(told)
}

// forgetPolicies evicts policies that were not evaluated for a week.
func (i *Inventory) forgetPolicies(now time.Time) {
	for id, known := range i.policies {
		if now.Sub(known.about.LastSeen) > Keep {
			delete(i.policies, id)
		}
	}
}

// Policies returns the results of each policy, by ID.
func (i *Inventory) Policies() []Policy {
	i.mu.RLock()
	defer i.mu.RUnlock()
	images := map[string]*Results{}
	for _, e := range i.images {
		for _, j := range e.judgements {
			if images[j.policy] == nil {
				images[j.policy] = &Results{}
			}
			images[j.policy].Add(j.result)
		}
	}
	all := make([]Policy, 0, len(i.policies))
	for id, known := range i.policies {
		p := known.about
		if now := images[id]; now != nil {
			p.Images = *now
		}
		p.Rules = make([]RuleTold, 0, len(known.ruleNames))
		for _, name := range known.ruleNames {
			p.Rules = append(p.Rules, RuleTold{Name: name, Results: *known.rules[name]})
		}
		all = append(all, p)
	}
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
	for id := range i.policies {
		policies[id] = struct{}{}
	}
	return Facets{firstOf(namespaces, maxFacets), firstOf(signers, maxFacets), firstOf(policies, maxFacets)}
}
