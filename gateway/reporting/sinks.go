package reporting

import (
	"cmp"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// Sinks are the sinks of decisions.
type Sinks struct {
	// Every receives the decision of each endpoint: that of the mutating one on the object as
	// written, and then that of the validating one on the object as it will be.
	Every []report.Sink
	// Last receives only the final decision: an object that the mutating endpoint admits comes to
	// the validating one, and a denied one never does.
	Last []report.Sink
	// Mutated receives the results of mutation rules alone, which only the mutating endpoint has. Those
	// for a new object, which has no UID there yet, follow with the validating endpoint's decision.
	Mutated []report.Sink
}

// pass passes the decision of a webhook endpoint to the sinks.
func (r Recorder) pass(review admission.Review) {
	if len(r.Sinks.Every)+len(r.Sinks.Last)+len(r.Sinks.Mutated) == 0 || review.Endpoint == admission.Policies || review.Cause == admission.NotAsked {
		return
	}
	d := report.Decided{Outcome: review.Outcome, Occasion: report.Occasion{
		Time: time.Now(), Process: report.ProcessAdmission, Endpoint: string(review.Endpoint), UID: review.UID,
		Operation: review.Operation, User: review.User, DryRun: review.DryRun, Allowed: review.Allowed || review.Shadow,
		Shadow: review.Shadow,
	}}
	if s := review.Outcome.Subject; s != nil {
		d.Occasion.Groups = s.User.Groups
	}
	if review.Cause != admission.Decided {
		d.Occasion.Undecided = string(review.Cause)
		d.About = resourceOf(review)
	}
	for _, sink := range r.Sinks.Every {
		sink.Take(d)
	}
	if reportedAgain(review) {
		r.passMutations(d)
		return
	}
	for _, sink := range r.Sinks.Last {
		sink.Take(d)
	}
	if review.Endpoint == admission.Validate && r.holds(&d) {
		r.passRules(d, r.Creations.get(&d))
	}
}

// holds reports whether the results of mutation rules for a new object wait for its UID.
func (r Recorder) holds(d *report.Decided) bool {
	return r.Creations != nil && len(r.Sinks.Mutated) > 0 && d.Occasion.Operation == "CREATE" && d.Occasion.Undecided == "" &&
		d.Occasion.Allowed && !d.Occasion.DryRun && !d.Occasion.Shadow
}

// passMutations passes the results of mutation rules on, or has them wait.
func (r Recorder) passMutations(d report.Decided) {
	rules := slices.DeleteFunc(slices.Clone(d.Outcome.Rules), func(rule policy.RuleResult) bool { return rule.Kind != policy.MutateRule })
	for i := range rules {
		if r := &rules[i]; r.Unchanged && r.Err == nil {
			r.Skip, r.Unchanged, r.Ruling = "", false, policy.Ruling{Result: policy.Pass} // nothing is left to change, as in a scan
		}
	}
	switch {
	case len(rules) == 0:
	case d.Occasion.Operation == "UPDATE":
		r.passRules(d, rules)
	case r.holds(&d):
		r.Creations.put(&d, rules)
	}
}

// passRules passes results of mutation rules on, if there are any.
func (r Recorder) passRules(d report.Decided, rules []policy.RuleResult) {
	if len(rules) == 0 {
		return
	}
	d.Outcome = gate.Outcome{Subject: d.Outcome.Subject, Result: d.Outcome.Result, Rules: rules}
	for _, sink := range r.Sinks.Mutated {
		sink.Take(d)
	}
}

// resourceOf names the object of a request without a decision.
func resourceOf(review admission.Review) report.Resource {
	version := review.Version
	if review.Group != "" {
		version = review.Group + "/" + review.Version
	}
	return report.Resource{APIVersion: version, Kind: review.Kind, Namespace: review.Namespace, Name: cmp.Or(review.Name, "*")}
}

// Take implements report.Sink: a single decision goes to all sinks.
func (s *Sinks) Take(d report.Decided) {
	for _, sink := range s.Every {
		sink.Take(d)
	}
	for _, sink := range s.Last {
		sink.Take(d)
	}
}
