package cleanup

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"

	kubernetes "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/background/cleanup"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy/ttl"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// maxMessage bounds the texts of errors, in bytes: the API server repeats texts of webhooks.
const maxMessage = 1024

// Metrics counts deletions.
type Metrics interface {
	CleanedUp(cause, outcome string)
	CleanupEnded(cause, end string, seconds float64)
}

// Events writes events soon and never waits.
type Events interface {
	Record(event record.Event)
}

// observer implements cleanup.Observer.
type observer struct {
	log     *slog.Logger
	metrics Metrics
	events  Events                     // nil: none are written
	record  func(decisionlog.Deletion) // nil: no decision log
	// lacking receives the permissions that policies lack after each check.
	lacking chan<- map[string]string

	mu    sync.Mutex
	known map[string]string // the permissions that were reported by an event
}

const byPolicy, byLabel = "policy", "ttl"

// Deleted counts an outcome, and reports deletions and labels without effect. The first reasons of a
// run why objects stay are in its end: a policy may select every object of the cluster.
func (o *observer) Deleted(d cleanup.Deletion) {
	cause, by := byLabel, "label "+ttl.Label
	if d.Policy != nil {
		cause, by = byPolicy, "policy "+d.Policy.ID()+"/"+d.Rule
	}
	o.metrics.CleanedUp(cause, string(d.Outcome))
	message := gateway.Shorten(d.Message, maxMessage)
	isDeletion := d.Outcome == cleanup.Deleted || d.Outcome == cleanup.Failed
	if !isDeletion && d.Policy != nil {
		return
	}
	level, note := slog.LevelInfo, by+" deleted it"
	kind := kubernetes.EventTypeNormal
	if d.Outcome != cleanup.Deleted {
		level, kind, note = slog.LevelWarn, kubernetes.EventTypeWarning, by+": "+message
	}
	o.log.Log(context.Background(), level, "an object was to be deleted",
		slog.String("outcome", string(d.Outcome)), slog.String("by", by), slog.String("kind", d.Kind.Kind),
		slog.String("namespace", d.Namespace), slog.String("name", d.Name), slog.String("uid", d.UID), slog.Time("scheduled", d.Scheduled),
		slog.String("grantedTo", d.By), slog.String("error", message))
	if o.record != nil && isDeletion {
		o.record(entryOf(d, message))
	}
	if o.events != nil {
		o.events.Record(record.Event{
			Type: kind, Reason: reasonOf(d.Outcome), Action: "Delete", Note: note,
			Regarding: kubernetes.ObjectReference{APIVersion: d.APIVersion, Kind: d.Kind.Kind, Namespace: d.Namespace, Name: d.Name},
		})
	}
}

func entryOf(d cleanup.Deletion, message string) decisionlog.Deletion {
	entry := decisionlog.Deletion{
		Rule:      d.Rule,
		Object:    report.Resource{APIVersion: d.APIVersion, Kind: d.Kind.Kind, Namespace: d.Namespace, Name: d.Name, UID: d.UID},
		Scheduled: d.Scheduled.UTC(), By: d.By, Propagation: string(d.Propagation), Outcome: string(d.Outcome), Message: message,
	}
	if d.Policy != nil {
		entry.Policy, entry.Hash = d.Policy.ID(), d.Policy.Hash
	}
	return entry
}

// reasonOf is the reason of an event about an object.
func reasonOf(outcome cleanup.Outcome) string {
	switch outcome {
	case cleanup.Deleted:
		return "CleanedUp"
	case cleanup.Failed:
		return "CleanupFailed"
	case cleanup.Ignored, cleanup.Protected, cleanup.Undecided:
	}
	return "LifetimeIgnored"
}

// Ended counts a run, and reports it on its policy. An event on a cluster-wide policy is in another
// namespace than the objects, where their names are not public.
func (o *observer) Ended(r cleanup.Run) {
	cause, about := byLabel, "label "+ttl.Label
	if r.Policy != nil {
		cause, about = byPolicy, "policy "+r.Policy.ID()+"/"+r.Rule
	}
	o.metrics.CleanupEnded(cause, string(r.End), r.Duration.Seconds())
	counts := fmt.Sprintf("%d deleted, %d failed, %d could not be decided, %d protected, of %d", r.Deleted, r.Failed, r.Undecided, r.Protected, r.Examined)
	level := slog.LevelInfo
	switch {
	case r.End == cleanup.Completed && r.Policy == nil && r.Deleted == 0:
		level = slog.LevelDebug // a pass each minute
	case r.End != cleanup.Completed && r.End != cleanup.Handover:
		level = slog.LevelWarn
	}
	messages := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		messages[i] = gateway.Shorten(m, maxMessage)
	}
	o.log.Log(context.Background(), level, "a cleanup ended", slog.String("by", about), slog.String("end", string(r.End)), slog.Time("scheduled", r.Scheduled),
		slog.Duration("duration", r.Duration), slog.Bool("continued", r.Continued), slog.String("objects", counts), slog.Any("messages", messages))
	if o.events == nil || r.Policy == nil || r.End == cleanup.Completed && r.Deleted == 0 && r.Protected == 0 {
		return
	}
	event := record.Event{Type: kubernetes.EventTypeNormal, Reason: "CleanupCompleted", Action: "Delete", Regarding: kinds.Reference(r.Policy),
		Note: "rule " + r.Rule + ": " + counts}
	if level == slog.LevelWarn {
		event.Type, event.Reason, event.Note = kubernetes.EventTypeWarning, "CleanupIncomplete", event.Note+": "+whyOf(r.End)
	}
	if r.Policy.Namespace != "" && len(messages) > 0 {
		event.Note += ": " + messages[0]
	}
	o.events.Record(event)
}

// whyOf explains the end of a run to the author of its policy.
func whyOf(end cleanup.End) string {
	switch end {
	case cleanup.LimitReached:
		return "the limit of deletions of one run is reached (cleanup.limit); the next run continues"
	case cleanup.PolicyChanged:
		return "it stopped because the policy was changed or deleted"
	case cleanup.TimedOut:
		return "it took too long; the next run continues"
	case cleanup.Missed:
		return "it was interrupted, and too late to continue"
	case cleanup.Errors, cleanup.Completed, cleanup.Handover:
	}
	return "some objects could not be read, decided or deleted; see the log"
}

// Lacking passes the permissions that policies lack on, and writes an event when they change.
func (o *observer) Lacking(permissions map[string]string) {
	o.mu.Lock()
	before := o.known
	o.known = maps.Clone(permissions)
	o.mu.Unlock()
	select {
	case o.lacking <- permissions:
	default: // a newer state replaces it at the next check
	}
	for id, missing := range permissions {
		if before[id] == missing {
			continue
		}
		o.log.Warn("a policy names objects that may not be deleted", slog.String("policy", id), slog.String("missing", missing))
		if of := kinds.ReferenceOf(id); o.events != nil && of.Name != "" {
			o.events.Record(record.Event{
				Type: kubernetes.EventTypeWarning, Reason: "PermissionMissing", Action: "Delete", Regarding: of, Note: cleanup.Missing(missing),
			})
		}
	}
}

// Failed logs an error that is retried.
func (o *observer) Failed(err error) {
	o.log.Warn("cleanup", slog.String("error", strings.ToValidUTF8(gateway.Shorten(err.Error(), maxMessage), "?")))
}
