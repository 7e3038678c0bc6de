package scan

import (
	"cmp"
	"slices"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// maxHeld bounds the stored findings of a scan.
const maxHeld = 100_000

// scanTally is a report.Sink that counts the results of rules, and stores the findings for
// workloads. A scan calls it from one goroutine.
type scanTally struct {
	rules   map[scanRule]*scanCount
	held    map[scanHeldKey]*scanHeld
	leftOut int
	// keeps: outcomes are stored as well, for the formats that need them.
	keeps   bool
	decided []report.Decided
}

type scanRule struct{ kind, policy, rule string }

// scanCount are the results of one rule.
type scanCount struct {
	Policy   string `json:"policy"`
	Rule     string `json:"rule,omitempty"`
	Enforced bool   `json:"enforced"`
	Pass     int    `json:"pass"`
	Fail     int    `json:"fail"`
	Warn     int    `json:"warn"`
	Error    int    `json:"error"`
	Skip     int    `json:"skip"`
}

// scanHeldKey is the common part of findings for all objects of one controller.
type scanHeldKey struct {
	workload     report.Resource
	policy, rule string
	image        string
	result       gate.Result
	message      string
}

// scanHeld is a finding of one rule for the objects of one workload.
type scanHeld struct {
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

func newScanTally(keeps bool) *scanTally {
	return &scanTally{rules: map[scanRule]*scanCount{}, held: map[scanHeldKey]*scanHeld{}, keeps: keeps}
}

// Take implements report.Sink.
func (t *scanTally) Take(d report.Decided) {
	if t.keeps {
		t.decided = append(t.decided, d)
	}
	said := false
	for _, r := range result.Of(d) {
		t.count(r)
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
		t.hold(r, answer)
	}
	if d.Outcome.Result.Admits() || said {
		return
	}
	// The reason belongs to no rule: an override set it, or the evaluation failed.
	for _, reason := range reasonsOf(d.Outcome) {
		t.hold(result.Result{Resource: d.Resource(), Status: result.Error, Code: reason.Code, Message: reason.Message}, d.Outcome.Result)
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

func (t *scanTally) count(r result.Result) {
	id := scanRule{r.Policy.Kind, r.Policy.String(), r.Rule}
	c := t.rules[id]
	if c == nil {
		c = &scanCount{Policy: r.Policy.Kind + "/" + id.policy, Rule: r.Rule}
		t.rules[id] = c
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

func (t *scanTally) hold(r result.Result, answer gate.Result) {
	key := scanHeldKey{workload: workloadOf(r.Resource), policy: r.Policy.String(), rule: r.Rule, result: answer, message: r.Message}
	if r.Image != nil {
		key.image = r.Image.Written
	}
	if have := t.held[key]; have != nil {
		have.Objects++
		return
	}
	if len(t.held) >= maxHeld {
		t.leftOut++
		return
	}
	made := &scanHeld{
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
	t.held[key] = made
}

// workloadOf returns the object's owner as its metadata names it, without a request.
func workloadOf(r report.Resource) report.Resource {
	if r.Owner == nil {
		return report.Resource{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	}
	return report.Resource{APIVersion: r.Owner.APIVersion, Kind: r.Owner.Kind, Namespace: r.Namespace, Name: r.Owner.Name}
}

// counts are the rules with a result, by policy and name.
func (t *scanTally) counts() []*scanCount {
	all := make([]*scanCount, 0, len(t.rules))
	for _, c := range t.rules {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *scanCount) int { return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Rule, b.Rule)) })
	return all
}

// against are the findings for workloads: denials first, then by name.
func (t *scanTally) against() []*scanHeld {
	all := make([]*scanHeld, 0, len(t.held))
	for _, h := range t.held {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *scanHeld) int {
		return cmp.Or(a.Result.Compare(b.Result),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Image, b.Image), cmp.Compare(a.Message, b.Message))
	})
	return all
}
