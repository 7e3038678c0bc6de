package gateway

import (
	"log/slog"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/policy/catalog"
)

// documentKinds are the custom resources that policies are written as, and which
// versions of them are understood.
func documentKinds() []document.Kind {
	return []document.Kind{
		{Group: policyGroup, Resource: "clusterpolicies", Versions: []string{"v1", "v2beta1"}},
		{Group: policyGroup, Resource: "policies", Versions: []string{"v1", "v2beta1"}},
		{Group: policyGroup, Resource: exceptionsResource, Versions: []string{"v2", "v2beta1"}},
	}
}

const (
	policyGroup        = "kyverno.io"
	exceptionsResource = "policyexceptions"
)

// documentResources are the same and our own mirrors, for the door that looks at
// them.
func documentResources() []schema.GroupResource {
	list := []schema.GroupResource{{Group: mirrorGroup, Resource: mirrorResource}}
	for _, kind := range documentKinds() {
		list = append(list, schema.GroupResource{Group: kind.Group, Resource: kind.Resource})
	}
	return list
}

// teller says what became of documents: each replica in its log, and the one that
// leads in the cluster.
type teller struct {
	log    *slog.Logger
	leads  func() bool // nil without a cluster
	events eventWriter // may be nil
	status statusWriter
}

// statusWriter writes the status of policies soon and never waits.
type statusWriter interface {
	Set(object record.Object, condition metav1.Condition)
}

// write tells the log.
func (t teller) write(entry catalog.Entry) {
	attrs := []any{slog.String("source", entry.Source), slog.String("state", string(entry.State))}
	if entry.State == catalog.Broken {
		t.log.Error("a policy document is broken: what it names is denied until it is corrected, unless it fails open", append(attrs, slog.String("error", entry.Why))...)
		return
	}
	t.log.Info("policy document", append(attrs, slog.String("why", entry.Why))...)
}

// announce tells the cluster. The object is zero for a document of a folder.
func (t teller) announce(entry catalog.Entry, object record.Object) {
	if t.leads == nil || !t.leads() {
		return
	}
	if t.events != nil && entry.State == catalog.Broken && entry.Policy != nil {
		t.events.Record(record.Event{
			Type: core.EventTypeWarning, Reason: "PolicyError", Action: "Compile", Regarding: policyOf(entry.Policy), Note: entry.Why,
		})
	}
	if t.status == nil || object.Name == "" || entry.State == catalog.NotOurs || object.Resource.Resource == exceptionsResource {
		return
	}
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Active", Message: "the policy is active"}
	if entry.State == catalog.Broken {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Broken", entry.Why
	}
	t.status.Set(object, condition)
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
