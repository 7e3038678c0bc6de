package cleanup

import (
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy"
)

// Outcome is what happened to an object that was to be deleted, or that could not be decided.
type Outcome string

// The outcomes. They are a contract, for metrics and the decision log.
const (
	Deleted   Outcome = "deleted"
	Failed    Outcome = "failed"    // the API server refused or did not answer
	Undecided Outcome = "undecided" // the rule could not be evaluated; the object stays
	Protected Outcome = "protected" // a rule of safety keeps it
	Ignored   Outcome = "ignored"   // the label for the lifetime has no grant, or cannot be read; the object stays
)

// Deletion is one object that was to be deleted.
type Deletion struct {
	// Policy and Rule selected it; nil and empty for the end of its lifetime.
	Policy *policy.Policy
	Rule   string
	// Scheduled is the time of the schedule, or the end of the lifetime.
	Scheduled time.Time
	// By is the user that set the label for the lifetime.
	By          string
	APIVersion  string
	Kind        background.Kind
	Namespace   string
	Name, UID   string
	Propagation policy.Propagation
	Outcome     Outcome
	Message     string // the reason of an outcome other than Deleted
}

// End is why a run ended.
type End string

// The ends. They are a contract, for metrics.
const (
	Completed     End = "completed"
	LimitReached  End = "limit-reached"  // Options.Limit
	PolicyChanged End = "policy-changed" // the policy was changed or deleted
	TimedOut      End = "timed-out"
	Errors        End = "errors"   // a list failed, or the rule itself
	Missed        End = "missed"   // it was interrupted, and is too late to continue
	Handover      End = "handover" // this process no longer leads: the next leader continues
)

// Run is the result of a run.
type Run struct {
	// Policy and Rule are those of the run; nil and empty for the objects whose lifetime has ended.
	Policy    *policy.Policy
	Rule      string
	Scheduled time.Time
	Duration  time.Duration
	// Continued: an earlier leader began it.
	Continued bool
	// Examined counts the objects that were listed, the others those with an outcome.
	Examined, Deleted, Failed, Undecided, Protected int
	End                                             End
	// Messages are the first errors and reasons.
	Messages []string
}

// Observer receives events of a Controller, concurrently; it must return quickly.
type Observer interface {
	// Deleted is called once for each Outcome.
	Deleted(d Deletion)
	// Ended: a run ended.
	Ended(r Run)
	// Lacking: the permissions that rules lack, by the IDs of policies. It is called after each
	// check, with all of them.
	Lacking(permissions map[string]string)
	// Failed: another error occurred, and the operation is retried.
	Failed(err error)
}

// count adds an outcome.
func (r *Run) count(of Outcome, message string) {
	switch of {
	case Deleted:
		r.Deleted++
		return
	case Failed:
		r.Failed++
	case Undecided:
		r.Undecided++
	case Protected:
		r.Protected++
	case Ignored:
	}
	r.note(message)
}

func (r *Run) note(message string) {
	if len(r.Messages) < maxMessages {
		r.Messages = append(r.Messages, message)
	}
}
