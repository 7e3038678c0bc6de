// Package findings counts the results of rules in a round of a scan, and groups findings by
// workload.
package findings

import (
	"cmp"
	"slices"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// maxFindings bounds the stored findings of a scan.
const maxFindings = 100_000

// Findings is a report.Sink that counts the results of rules, and stores the findings for
// workloads. A scan calls it from one goroutine.
type Findings struct {
	rules    map[ruleKey]*Rule
	findings map[findingKey]*Finding
	LeftOut  int // findings beyond the bound
	// keeps: outcomes are stored as well, for the formats that need them.
	keeps   bool
	Decided []report.Decided
}

type ruleKey struct{ kind, policy, rule string }

// Rule are the results of one rule.
type Rule struct {
	Policy   string `json:"policy"`
	Rule     string `json:"rule,omitempty"`
	Enforced bool   `json:"enforced"`
	Pass     int    `json:"pass"`
	Fail     int    `json:"fail"`
	Warn     int    `json:"warn"`
	Error    int    `json:"error"`
	Skip     int    `json:"skip"`
}

// findingKey is the common part of findings for all objects of one controller.
type findingKey struct {
	workload     report.Resource
	policy, rule string
	image        string
	result       gate.Result
	message      string
}

// Finding is a finding of one rule for the objects of one workload.
type Finding struct {
	// Result is the result of an admission now: deny, error, or allow if the finding is only
	// reported.
	Result    gate.Result   `json:"result"`
	Kind      string        `json:"kind"`
	Namespace string        `json:"namespace,omitempty"`
	Name      string        `json:"name"`
	Objects   int           `json:"objects"`
	Example   string        `json:"example,omitempty"` // one of the objects, where they have a controller
	Policy    string        `json:"policy,omitempty"`
	Rule      string        `json:"rule,omitempty"`
	Status    result.Status `json:"status"`
	Image     string        `json:"image,omitempty"`
	Digest    string        `json:"digest,omitempty"`
	Code      policy.Code   `json:"code,omitempty"`
	Message   string        `json:"message,omitempty"`
}

// New returns an empty count. keeps: outcomes are stored as well.
func New(keeps bool) *Findings {
	return &Findings{rules: map[ruleKey]*Rule{}, findings: map[findingKey]*Finding{}, keeps: keeps}
}

// Take implements report.Sink.
func (f *Findings) Take(d report.Decided) {
	if f.keeps {
		f.Decided = append(f.Decided, d)
	}
	said := false
	for _, r := range result.Of(d) {
		f.count(r)
		if r.Status == result.Pass || r.Status == result.Skip {
			continue
		}
		answer := gate.Allow
		switch {
		case r.Enforced && r.Status == result.Fail && !d.Outcome.Result.Admits():
			answer = gate.Deny
		case r.Enforced && r.Status == result.Error && !d.Outcome.Result.Admits():
			answer = gate.Error
		}
		said = said || !answer.Admits()
		f.add(r, answer)
	}
	if d.Outcome.Result.Admits() || said {
		return
	}
	// The reason belongs to no rule: an override set it, or the evaluation failed.
	for _, reason := range reasonsOf(d.Outcome) {
		f.add(result.Result{Resource: d.Resource(), Status: result.Error, Code: reason.Code, Message: reason.Message}, d.Outcome.Result)
	}
}

// reasonsOf returns the reasons against an object that belong to no rule.
func reasonsOf(o gate.Outcome) []policy.Reason {
	reasons := slices.Clone(o.Reasons)
	for i := range o.Verdicts {
		if !o.Verdicts[i].Result.Admits() {
			reasons = append(reasons, o.Verdicts[i].Reasons...)
		}
	}
	return reasons
}

func (f *Findings) count(r result.Result) {
	id := ruleKey{r.Policy.Kind, r.Policy.String(), r.Rule}
	c := f.rules[id]
	if c == nil {
		c = &Rule{Policy: r.Policy.Kind + "/" + id.policy, Rule: r.Rule}
		f.rules[id] = c
	}
	c.Enforced = c.Enforced || r.Enforced
	switch r.Status {
	case result.Pass:
		c.Pass++
	case result.Fail:
		c.Fail++
	case result.Warn:
		c.Warn++
	case result.Error:
		c.Error++
	case result.Skip:
		c.Skip++
	}
}

func (f *Findings) add(r result.Result, answer gate.Result) {
	key := findingKey{workload: workloadOf(r.Resource), policy: r.Policy.String(), rule: r.Rule, result: answer, message: r.Message}
	if r.Image != nil {
		key.image = r.Image.Written
	}
	if have := f.findings[key]; have != nil {
		have.Objects++
		return
	}
	if len(f.findings) >= maxFindings {
		f.LeftOut++
		return
	}
	made := &Finding{
		Result: answer, Kind: key.workload.Kind, Namespace: key.workload.Namespace, Name: key.workload.Name, Objects: 1,
		Rule: r.Rule, Status: r.Status, Image: key.image, Code: r.Code, Message: r.Message,
	}
	if r.Policy.Name != "" {
		made.Policy = r.Policy.Kind + "/" + r.Policy.String()
	}
	if r.Image != nil {
		made.Digest = r.Image.Digest
	}
	if r.Resource.Owner != nil {
		made.Example = r.Resource.Kind + "/" + r.Resource.Name
	}
	f.findings[key] = made
}

// workloadOf returns the object's owner as its metadata names it, without a request.
func workloadOf(r report.Resource) report.Resource {
	if r.Owner == nil {
		return report.Resource{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	}
	return report.Resource{APIVersion: r.Owner.APIVersion, Kind: r.Owner.Kind, Namespace: r.Namespace, Name: r.Owner.Name}
}

// Rules are the rules with a result, by policy and name.
func (f *Findings) Rules() []*Rule {
	all := make([]*Rule, 0, len(f.rules))
	for _, c := range f.rules {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Rule) int { return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Rule, b.Rule)) })
	return all
}

// Sorted are the findings for workloads: denials first, then by name.
func (f *Findings) Sorted() []*Finding {
	all := make([]*Finding, 0, len(f.findings))
	for _, h := range f.findings {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *Finding) int {
		return cmp.Or(a.Result.Compare(b.Result),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Image, b.Image), cmp.Compare(a.Message, b.Message))
	})
	return all
}
