package gateway

import (
	"context"
	"log/slog"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// recorder tells of each answer: the log of every one, the metrics, and events of
// what a person should know.
type recorder struct {
	log     *slog.Logger
	metrics reviewCounter
	events  eventWriter // nil: none are written
}

// reviewCounter counts decisions.
type reviewCounter interface {
	Decided(outcome gate.Outcome)
}

// eventWriter writes events soon and never waits.
type eventWriter interface {
	Record(event record.Event)
}

// Record implements admission.Recorder.
func (r recorder) Record(ctx context.Context, review admission.Review) {
	r.tell(ctx, review)
	if review.Cause != admission.Decided {
		return
	}
	r.metrics.Decided(review.Outcome)
	if r.events == nil || review.DryRun {
		return
	}
	for _, event := range eventsOf(review) {
		r.events.Record(event)
	}
}

// tell writes the log.
func (r recorder) tell(ctx context.Context, review admission.Review) {
	about := []slog.Attr{
		slog.String("door", string(review.Door)), slog.String("uid", review.UID),
		slog.String("operation", review.Operation), slog.String("user", review.User),
	}
	if review.DryRun {
		about = append(about, slog.Bool("dryRun", true))
	}
	if review.Mirror {
		about = append(about, slog.Bool("mirrorPod", true))
	}
	if review.Err != nil {
		about = append(about, slog.String("error", review.Err.Error()))
	}
	if review.Cause == admission.Decided {
		report.Log(ctx, r.log, review.Outcome, about...)
		return
	}
	level := slog.LevelDebug
	if !review.Allowed || review.Cause != admission.NotAsked {
		level = slog.LevelWarn
	}
	about = append(about, slog.String("kind", review.Kind), slog.String("namespace", review.Namespace), slog.String("name", review.Name),
		slog.String("cause", string(review.Cause)), slog.Bool("allowed", review.Allowed))
	r.log.LogAttrs(ctx, level, "not decided", about...)
}

// eventsOf returns an event for each image that a policy speaks against: on the
// policy where the object will not exist, else on the object.
func eventsOf(review admission.Review) []record.Event {
	var events []record.Event
	for i := range review.Outcome.Verdicts {
		v := &review.Outcome.Verdicts[i]
		for _, d := range v.Decisions {
			if d.Result != policy.Fail && d.Result != policy.Undecided {
				continue
			}
			event := record.Event{
				Type: core.EventTypeWarning, Reason: "PolicyViolation", Action: "Admitted", Regarding: objectOf(review),
				Note: noteOf(review, v, d),
			}
			if d.Result == policy.Undecided {
				event.Reason = "PolicyError"
			}
			if !review.Allowed {
				event.Action = "Denied"
			}
			if !review.Allowed || review.Name == "" {
				event.Regarding = policyOf(d.Check.Policy)
			}
			events = append(events, event)
		}
	}
	return events
}

func objectOf(review admission.Review) core.ObjectReference {
	apiVersion := review.Version
	if review.Group != "" {
		apiVersion = review.Group + "/" + review.Version
	}
	return core.ObjectReference{APIVersion: apiVersion, Kind: review.Kind, Namespace: review.Namespace, Name: review.Name}
}

func policyOf(p *policy.Policy) core.ObjectReference {
	return core.ObjectReference{APIVersion: "kyverno.io/v1", Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
}

func noteOf(review admission.Review, v *gate.Verdict, d policy.Decision) string {
	var b strings.Builder
	b.WriteString(review.Kind + " " + strings.TrimPrefix(review.Namespace+"/"+review.Name, "/"))
	b.WriteString(": container " + v.Image.Container + ", image " + v.Image.Ref.Written())
	b.WriteString(", policy " + d.Check.Policy.ID() + "/" + d.Check.Rule + ": ")
	b.WriteString(string(d.Reasons[0].Code) + ": " + d.Reasons[0].Message)
	return b.String()
}
