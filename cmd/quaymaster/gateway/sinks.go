package gateway

import (
	"cmp"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// keepers are who keeps what was decided.
type keepers struct {
	// every is handed what each door says: what the mutating one admits as it was
	// written, and then what the validating one says of it as it will be.
	every []report.Sink
	// last is handed the last word alone: what the mutating door admits comes to the
	// validating one, and what it denies never gets there.
	last []report.Sink
}

// pass hands what a webhook's door decided to those who keep it.
func (r recorder) pass(review admission.Review) {
	if len(r.sinks.every)+len(r.sinks.last) == 0 || review.Door == admission.Compile || review.Cause == admission.NotAsked {
		return
	}
	d := report.Decided{Outcome: review.Outcome, Occasion: report.Occasion{
		Time: time.Now(), Process: report.ProcessAdmission, Door: string(review.Door), UID: review.UID,
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
	for _, sink := range r.sinks.every {
		sink.Take(d)
	}
	if toldAgain(review) {
		return
	}
	for _, sink := range r.sinks.last {
		sink.Take(d)
	}
}

// resourceOf names the object of a request that nobody decided.
func resourceOf(review admission.Review) report.Resource {
	version := review.Version
	if review.Group != "" {
		version = review.Group + "/" + review.Version
	}
	return report.Resource{APIVersion: version, Kind: review.Kind, Namespace: review.Namespace, Name: cmp.Or(review.Name, "*")}
}

// Take implements report.Sink: what is decided once is handed to all.
func (s *keepers) Take(d report.Decided) {
	for _, sink := range s.every {
		sink.Take(d)
	}
	for _, sink := range s.last {
		sink.Take(d)
	}
}
