package policycount

import (
	"iter"
	"maps"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/evidence"
	"github.com/quaymaster/quaymaster/report/inventory/internal/timeline"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

const (
	// maxPolicies bounds the counted policies, and maxRules the rules of one policy.
	maxPolicies = 2_000
	maxRules    = 100
	// maxName bounds a name, and maxMessage a message, in bytes.
	maxName    = 512
	maxMessage = 600
	// grain and intervals are the counts over time: a week, at 48 bytes an interval.
	grain     = 6 * time.Hour
	intervals = 28
)

// Counts holds the results of all policies. It is not safe for concurrent use. Create one with New.
type Counts struct {
	policies map[string]*counted
}

// counted holds the results of one policy since the process started.
type counted struct {
	about     Policy // without the counts of images, rules and moments
	rules     map[string]*verdict.Results
	ruleNames []string // in the order of their first occurrence
	over      *timeline.Ring[verdict.Results]
}

// result is one result of a rule.
type result struct {
	policy  report.Policy
	rule    string
	kind    verdict.Kind
	reasons []policy.Reason
}

// New creates Counts without policies.
func New() Counts { return Counts{policies: map[string]*counted{}} }

// Add counts the results of a record.
func (c *Counts) Add(o report.Occasion, r report.Record) {
	for n := range r.Images {
		for k := range r.Images[n].Decisions {
			d := &r.Images[n].Decisions[k]
			c.add(o, result{d.Policy, d.Rule, verdict.OfRule(d), d.Reasons})
		}
	}
	for n := range r.Rules {
		rule := &r.Rules[n]
		switch {
		case rule.Error != "":
			c.add(o, result{rule.Policy, rule.Rule, verdict.Error, []policy.Reason{{Code: policy.PolicyError, Message: rule.Error}}})
		case rule.Kind != policy.ImageRule && rule.Skipped == "":
			c.add(o, result{rule.Policy, rule.Rule, verdict.OfResult(rule.Result, rule.Action == policy.Warn), rule.Reasons})
		}
	}
}

func (c *Counts) add(o report.Occasion, r result) {
	id := r.policy.String()
	known := c.policies[id]
	if known == nil {
		if len(c.policies) >= maxPolicies || r.policy.Name == "" {
			return
		}
		known = &counted{rules: map[string]*verdict.Results{}, over: timeline.New[verdict.Results](grain, intervals), about: Policy{
			ID: cut(id), Kind: cut(r.policy.Kind), Namespace: cut(r.policy.Namespace), Name: cut(r.policy.Name),
		}}
		c.policies[known.about.ID] = known
	}
	at := o.Time.UTC()
	known.about.Hash, known.about.LastSeen = cut(r.policy.Hash), at
	switch r.kind {
	case verdict.Fail:
		known.about.LastFail = at
	case verdict.Error:
		known.about.LastError = problemOf(r, at)
	case verdict.Pass, verdict.Warn, verdict.Skip:
	}
	if o.Process == report.ProcessScan {
		known.about.Scan.Add(r.kind)
	} else {
		known.about.Admission.Add(r.kind)
	}
	if moment := known.over.At(at); moment != nil {
		moment.Add(r.kind)
	}
	known.addRule(cut(r.rule), r.kind)
}

func (k *counted) addRule(name string, kind verdict.Kind) {
	results := k.rules[name]
	if results == nil {
		if len(k.ruleNames) == maxRules {
			return
		}
		results = &verdict.Results{}
		k.rules[name] = results
		k.ruleNames = append(k.ruleNames, name)
	}
	results.Add(kind)
}

func problemOf(r result, at time.Time) *Problem {
	p := &Problem{Time: at, Rule: cut(r.rule)}
	if len(r.reasons) > 0 {
		p.Code, p.Message = cut(string(r.reasons[0].Code)), evidence.Cut(r.reasons[0].Message, maxMessage)
	}
	return p
}

// Evict evicts policies that were not evaluated for so long.
func (c *Counts) Evict(now time.Time, keep time.Duration) {
	for id, known := range c.policies {
		if now.Sub(known.about.LastSeen) > keep {
			delete(c.policies, id)
		}
	}
}

// Each calls do with the results of each policy, without those for images, in no order.
func (c *Counts) Each(now time.Time, do func(Policy)) {
	for _, known := range c.policies {
		p := known.about
		p.Rules = make([]Rule, 0, len(known.ruleNames))
		for _, name := range known.ruleNames {
			p.Rules = append(p.Rules, Rule{Name: name, Results: *known.rules[name]})
		}
		for _, each := range known.over.Last(now, intervals) {
			if each.Counts != (verdict.Results{}) {
				p.Moments = append(p.Moments, Moment{each.Start, each.Counts})
			}
		}
		do(p)
	}
}

// IDs are the IDs of the policies, in no order.
func (c *Counts) IDs() iter.Seq[string] { return maps.Keys(c.policies) }

// Len is the number of policies.
func (c *Counts) Len() int { return len(c.policies) }

func cut(text string) string { return evidence.Cut(text, maxName) }
