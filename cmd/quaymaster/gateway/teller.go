package gateway

import (
	"cmp"
	"errors"
	"log/slog"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
)

// teller reports the state of documents: each replica in its log, and the leader in the cluster.
type teller struct {
	log    *slog.Logger
	leads  func() bool // nil without a cluster
	events Events      // may be nil
	// conditions may be nil; writes reports whether the gateway writes the status of a group's
	// kinds, which another engine may write as well.
	conditions statusWriter
	writes     func(group string) bool
	// readiness tracks the policies in force at the API servers; it may be nil without a leader.
	readiness   *readiness
	controllers *controllerWatch // may be nil
	// roots returns why the content of a TrustRoot is not available; nil: all are available.
	roots func(*trustroot.TrustRoot) string
	// withheld returns why a policy does not deny by its current version; empty: it does. May be
	// nil.
	withheld func(catalog.Entry) string
}

// Events writes events soon and never waits.
type Events interface {
	Record(event record.Event)
}

// statusWriter writes the status of policies soon and never waits.
type statusWriter interface {
	Set(object record.Object, condition metav1.Condition)
}

// write writes the state to the log.
func (t teller) write(entry catalog.Entry) {
	attrs := []any{slog.String("source", entry.Source), slog.String("state", string(entry.State))}
	if entry.State == catalog.NotOurs && entry.Unknown != "" {
		t.log.Warn("a document of a kind that is not implemented is left alone: nothing of it is run by the gateway", append(attrs, slog.String("kind", entry.Unknown))...)
		return
	}
	if entry.State != catalog.Broken {
		t.log.Info("policy document", append(attrs, slog.String("why", cmp.Or(entry.Why, t.why(entry))))...)
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
	t.log.Error(said, append(attrs, slog.String("error", entry.Why))...)
}

// isBackground reports whether a broken document has no rule for admission.
func isBackground(entry catalog.Entry) bool {
	_, is := errors.AsType[*catalog.BackgroundError](entry.Err)
	return is
}

// why returns why a policy does not deny by its current version.
func (t teller) why(entry catalog.Entry) string {
	if t.withheld == nil {
		return ""
	}
	return t.withheld(entry)
}

// announce writes events. The object is zero for a document of a folder.
func (t teller) announce(entry catalog.Entry, object record.Object) {
	if t.leads == nil || !t.leads() {
		return
	}
	if about := regarding(entry, object); t.events != nil && entry.State == catalog.Broken && about.Name != "" {
		t.events.Record(record.Event{Type: core.EventTypeWarning, Reason: "PolicyError", Action: "Compile", Regarding: about, Note: entry.Why})
	}
}

// status writes the status of a document of the cluster, if it differs from the last written one.
func (t teller) status(entry catalog.Entry, object clusterObject) {
	if t.leads == nil || !t.leads() || t.conditions == nil || object.Name == "" || entry.State == catalog.NotOurs {
		return
	}
	kind := kinds.OfResource(object.Resource.GroupResource())
	if kind.Status == kinds.NoStatus || kind.Status != kinds.OwnStatus && !t.writes(kind.Group) {
		return
	}
	condition, settled := t.condition(entry, object)
	if !settled || !t.readiness.differs(entry.Key, object, condition) {
		return
	}
	if kind.Status == kinds.ConditionStatus {
		object.Within = "conditionStatus"
	}
	t.conditions.Set(object.Object, condition)
}

// regarding is the object of an event about a document.
func regarding(entry catalog.Entry, object record.Object) core.ObjectReference {
	if entry.Policy != nil {
		return kinds.Reference(entry.Policy)
	}
	return core.ObjectReference{
		APIVersion: object.Resource.GroupVersion().String(), Kind: kinds.OfResource(object.Resource.GroupResource()).Name,
		Namespace: object.Namespace, Name: object.Name,
	}
}
