package status

import (
	"cmp"
	"errors"
	"log/slog"

	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
)

// Reporter reports the state of documents: each replica in its log, and the leader in the cluster.
type Reporter struct {
	Log    *slog.Logger
	Leads  func() bool // nil without a cluster
	Events Events      // may be nil
	// Writes reports whether the gateway writes the status of a group's kinds, which another engine
	// may write as well.
	Writes func(group string) bool
	// Readiness tracks the policies in force at the API servers; it may be nil without a leader.
	Readiness   *Readiness
	Controllers *Controllers // may be nil
	Deletions   *Deletions   // may be nil
	// Roots returns why the content of a TrustRoot is not available; nil: all are available.
	Roots func(*trustroot.TrustRoot) string
	// Withheld returns why a policy does not deny by its current version; empty: it does. May be
	// nil.
	Withheld func(catalog.Entry) string
}

// Events writes events soon and never waits.
type Events interface {
	Record(event record.Event)
}

// LogState writes the state to the log.
func (t Reporter) LogState(entry catalog.Entry) {
	attrs := []any{slog.String("source", entry.Source), slog.String("state", string(entry.State))}
	if entry.State == catalog.NotOurs && entry.Unknown != "" {
		t.Log.Warn("a document of a kind that is not implemented is left alone: nothing of it is run by the gateway", append(attrs, slog.String("kind", entry.Unknown))...)
		return
	}
	if entry.State != catalog.Broken {
		t.Log.Info("policy document", append(attrs, slog.String("why", cmp.Or(entry.Why, t.why(entry))))...)
		return
	}
	said := "a document beside policies is broken, and does nothing until it is corrected"
	switch {
	case isBackground(entry):
		said = "a policy document is broken: none of its rules is run until it is corrected"
	case entry.Policy != nil:
		said = "a policy document is broken: what it names is denied until it is corrected, unless it fails open"
	case entry.Override != nil:
		said = "an override is broken: what of it can be read denies until it is corrected"
	}
	t.Log.Error(said, append(attrs, slog.String("error", entry.Why))...)
}

// isBackground reports whether a broken document has no rule for admission.
func isBackground(entry catalog.Entry) bool {
	_, is := errors.AsType[*catalog.BackgroundError](entry.Err)
	return is
}

// why returns why a policy does not deny by its current version.
func (t Reporter) why(entry catalog.Entry) string {
	if t.Withheld == nil {
		return ""
	}
	return t.Withheld(entry)
}

// RecordEvent writes events. The object is zero for a document of a folder.
func (t Reporter) RecordEvent(entry catalog.Entry, object documents.Object) {
	if t.Leads == nil || !t.Leads() {
		return
	}
	if about := regarding(entry, object); t.Events != nil && entry.State == catalog.Broken && about.Name != "" {
		t.Events.Record(record.Event{Type: core.EventTypeWarning, Reason: "PolicyError", Action: "Compile", Regarding: about, Note: entry.Why})
	}
}

// Desired returns the status of a document of the cluster; false if none is to be written.
func (t Reporter) Desired(entry catalog.Entry, object Object) (record.Desired, bool) {
	if object.Name == "" || entry.State == catalog.NotOurs {
		return record.Desired{}, false
	}
	kind := kinds.OfResource(object.Resource.GroupResource())
	if kind.Status == kinds.NoStatus || kind.Status != kinds.OwnStatus && !t.Writes(kind.Group) {
		return record.Desired{}, false
	}
	if kind.Status == kinds.ConditionStatus {
		object.Within = "conditionStatus"
	}
	condition, settled := t.condition(entry, object)
	desired := record.Desired{Object: object.Object.Object, Condition: condition}
	if kind.Status != kinds.OwnStatus {
		desired.Remedy = kinds.NeverWrite
	}
	return desired, settled
}

// regarding is the object of an event about a document.
func regarding(entry catalog.Entry, object documents.Object) core.ObjectReference {
	if entry.Policy != nil {
		return kinds.Reference(entry.Policy)
	}
	return core.ObjectReference{
		APIVersion: object.Resource.GroupVersion().String(), Kind: kinds.OfResource(object.Resource.GroupResource()).Name,
		Namespace: object.Namespace, Name: object.Name,
	}
}

// Object is the resource of a document of the cluster.
type Object struct {
	documents.Object
	// Since is the first set that contains the current document; Unpublished: none yet.
	Since int64
}

// Unpublished is the Since of an object whose current document is in no set yet.
const Unpublished = -1
