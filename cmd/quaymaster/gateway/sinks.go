package gateway

import (
	"cmp"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// pass hands what a webhook's door decided to those who keep it. What was admitted by
// the mutating door is said once, by the validating one; what it denies never gets
// there.
func (r recorder) pass(review admission.Review) {
	if len(r.sinks) == 0 || review.Door == admission.Compile || review.Cause == admission.NotAsked {
		return
	}
	if review.Door == admission.Mutate && review.Allowed && review.Cause == admission.Decided {
		return
	}
	d := report.Decided{Outcome: review.Outcome, Occasion: report.Occasion{
		Time: time.Now(), Process: report.ProcessAdmission, Door: string(review.Door), UID: review.UID,
		Operation: review.Operation, User: review.User, DryRun: review.DryRun, Allowed: review.Allowed,
	}}
	if s := review.Outcome.Subject; s != nil {
		d.Occasion.Groups = s.User.Groups
	}
	if review.Cause != admission.Decided {
		d.Occasion.Undecided = string(review.Cause)
		d.About = resourceOf(review)
	}
	r.hand(d)
}

// resourceOf names the object of a request that nobody decided.
func resourceOf(review admission.Review) report.Resource {
	version := review.Version
	if review.Group != "" {
		version = review.Group + "/" + review.Version
	}
	return report.Resource{APIVersion: version, Kind: review.Kind, Namespace: review.Namespace, Name: cmp.Or(review.Name, "*")}
}

// hand gives it to every sink.
func (r recorder) hand(d report.Decided) {
	for _, sink := range r.sinks {
		sink.Take(d)
	}
}
