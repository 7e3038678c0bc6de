package gateway

import (
	"cmp"
	"errors"
	"log/slog"
	"strings"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// teller says what became of documents: each replica in its log, and the one that
// leads in the cluster.
type teller struct {
	log    *slog.Logger
	leads  func() bool // nil without a cluster
	events eventWriter // may be nil
	status statusWriter
	writes bool // the status of kinds that are other engines', too
	// roots says why nobody knows what a TrustRoot trusts; nil: all are known.
	roots func(*trustroot.TrustRoot) string
	// withheld says why a policy does not deny by what it says now; empty: it does. May
	// be nil.
	withheld func(catalog.Entry) string
}

// statusWriter writes the status of policies soon and never waits.
type statusWriter interface {
	Set(object record.Object, condition metav1.Condition)
}

// write tells the log.
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

// why says why a policy does not deny by what it says now.
func (t teller) why(entry catalog.Entry) string {
	if t.withheld == nil {
		return ""
	}
	return t.withheld(entry)
}

// announce tells the cluster. The object is zero for a document of a folder.
func (t teller) announce(entry catalog.Entry, object record.Object) {
	if t.leads == nil || !t.leads() {
		return
	}
	if about := regarding(entry, object); t.events != nil && entry.State == catalog.Broken && about.Name != "" {
		t.events.Record(record.Event{Type: core.EventTypeWarning, Reason: "PolicyError", Action: "Compile", Regarding: about, Note: entry.Why})
	}
	form := ofResource(object.Resource.GroupResource()).status
	if t.status == nil || object.Name == "" || entry.State == catalog.NotOurs || form == noStatus || form != ownStatus && !t.writes {
		return
	}
	if form == conditionStatus {
		object.Within = "conditionStatus"
	}
	t.status.Set(object, t.condition(entry))
}

// regarding is what an event about a document is on.
func regarding(entry catalog.Entry, object record.Object) core.ObjectReference {
	if entry.Policy != nil {
		return policyOf(entry.Policy)
	}
	return core.ObjectReference{
		APIVersion: object.Resource.GroupVersion().String(), Kind: ofResource(object.Resource.GroupResource()).kind,
		Namespace: object.Namespace, Name: object.Name,
	}
}

func (t teller) condition(entry catalog.Entry) metav1.Condition {
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Active", Message: "it is active"}
	var limits []string
	if entry.Why != "" {
		limits = append(limits, entry.Why)
	}
	if entry.Policy != nil {
		limits = append(limits, configuration.Stated(entry.Policy)...)
	}
	if len(limits) > 0 {
		condition.Message = cut(condition.Message+", but "+strings.Join(limits, "; "), maxStatusMessage)
	}
	not := func(reason, why string) {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reason, cut(why, maxStatusMessage)
	}
	if entry.Root != nil && t.roots != nil {
		if why := t.roots(entry.Root); why != "" {
			not("NotRead", why)
		}
	}
	if why := t.why(entry); why != "" {
		not("Withheld", why)
	}
	if entry.State == catalog.Broken {
		not("Broken", entry.Why)
	}
	return condition
}

// documentLog is the document.Observer of the log.
type documentLog struct{ log *slog.Logger }

// Pruned implements document.Observer.
func (d documentLog) Pruned(kind schema.GroupVersionResource, place string) {
	d.log.Warn("the API server drops unknown fields of these documents before anybody can see and refuse them: a misspelt field is lost without a word",
		slog.String("resource", kind.GroupResource().String()), slog.String("version", kind.Version), slog.String("below", place))
}

// Served implements document.Observer.
func (d documentLog) Served(kind schema.GroupVersionResource, served bool) {
	d.log.Info("custom resource", slog.String("resource", kind.GroupResource().String()), slog.String("version", kind.Version), slog.Bool("watched", served))
}

// Failed implements document.Observer.
func (d documentLog) Failed(err error) {
	d.log.Warn("policies and mirrors cannot be watched; those that were active stay so", slog.String("error", err.Error()))
}
