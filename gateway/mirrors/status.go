package mirrors

import (
	"log/slog"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/registry/health"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

const (
	// maxTargetMessage bounds the message about one target, in bytes.
	maxTargetMessage = 300
)

// reporter reports the state of mirrors: each replica in its log, and the leader in the
// cluster.
type reporter struct {
	log    *slog.Logger
	leads  func() bool     // nil without a cluster
	events Events          // may be nil
	status *gateway.Signal // the content of a status has changed
}

// write writes the state to the log.
func (t reporter) write(d *entry) {
	attrs := []any{slog.String("source", d.source), slog.String("state", string(d.state()))}
	switch d.state() {
	case metrics.MirrorOutdated:
		t.log.Error("a mirror is broken: the last version that could be used holds until it is corrected or the gateway starts anew", append(attrs, slog.String("error", d.why().Error()))...)
	case metrics.MirrorBroken:
		t.log.Error("a mirror is broken: nothing is redirected or judged by it until it is corrected", append(attrs, slog.String("error", d.why().Error()))...)
	default:
		t.log.Info("mirror", append(attrs, slog.String("mirror", d.id()), slog.String("hash", d.good.Hash))...)
	}
}

// announce writes an event for a broken mirror of the cluster.
func (t reporter) announce(d *entry) {
	if t.leads == nil || !t.leads() || t.events == nil || d.object.Name == "" || d.why() == nil {
		return
	}
	t.events.Record(record.Event{
		Type: core.EventTypeWarning, Reason: "MirrorError", Action: "Compile", Note: d.why().Error(),
		Regarding: core.ObjectReference{APIVersion: d.object.Resource.GroupVersion().String(), Kind: "RegistryMirror", Name: d.object.Name},
	})
}

// targetState is the state of one target's registry in a status.
type targetState struct {
	Registry string       `json:"registry"`
	State    string       `json:"state"`
	Since    *metav1.Time `json:"since,omitempty"`
	Message  string       `json:"message,omitempty"`
}

// Desired returns the status of each RegistryMirror of the cluster.
func (m *Mirrors) Desired(states []health.State) []record.Desired {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []record.Desired
	for _, key := range m.keys() {
		d := m.documents[key]
		if d.object.Name == "" {
			continue
		}
		targets := []targetState{}
		if d.good != nil && d.clash == nil {
			if alone, err := mirror.NewSet(d.good); err == nil {
				targets = targetsOf(alone.Registries(), states)
			}
		}
		list = append(list, record.Desired{Object: d.object.Object, Condition: d.condition(), Fields: map[string]any{"targets": targets}, Overwrite: true})
	}
	return list
}

// condition is the condition of the document: whether it is used.
func (d *entry) condition() metav1.Condition {
	c := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Active",
		Message: "the mirror is active", ObservedGeneration: d.object.Generation}
	if why := d.why(); why != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Broken", why.Error()
		if d.state() == metrics.MirrorOutdated {
			c.Reason, c.Message = "Outdated", "the version before it is used: "+c.Message
		}
		c.Message = gateway.Shorten(c.Message, gateway.MaxStatusMessage)
	}
	return c
}

func targetsOf(registries []string, states []health.State) []targetState {
	targets := make([]targetState, 0, len(registries))
	for _, registry := range registries {
		target := targetState{Registry: registry, State: "unknown", Message: "it has not been asked yet"}
		if i := slices.IndexFunc(states, func(s health.State) bool { return s.Registry == registry }); i >= 0 {
			target = targetState{Registry: registry, State: "answering", Since: &metav1.Time{Time: states[i].Since.UTC().Truncate(time.Second)}}
			if states[i].Phase != health.Closed {
				target.State = "resting"
				if states[i].Err != nil {
					target.Message = gateway.Shorten(states[i].Err.Error(), maxTargetMessage)
				}
			}
		}
		targets = append(targets, target)
	}
	return targets
}
