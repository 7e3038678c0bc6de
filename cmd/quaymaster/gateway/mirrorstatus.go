package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/registry/health"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

const (
	// statusPause is the least time between two rounds of writing the status of mirrors, so that
	// an unstable registry does not cause a flood of writes.
	statusPause = 2 * time.Second
	// statusResync is the time between two rounds without a change, to repeat failed writes.
	statusResync = time.Minute
	// statusTimeout bounds one write.
	statusTimeout = 10 * time.Second
	// maxStatusMessage bounds a condition's message, in bytes; the API's bound is
	// 32,768.
	maxStatusMessage = 4 << 10
	// maxTargetMessage bounds the message about one target, in bytes.
	maxTargetMessage = 300
)

// mirrorTeller reports the state of mirrors: each replica in its log, and the leader in the
// cluster.
type mirrorTeller struct {
	log    *slog.Logger
	leads  func() bool     // nil without a cluster
	events eventWriter     // may be nil
	status *gateway.Signal // the content of a status has changed
}

// write writes the state to the log.
func (t mirrorTeller) write(d *mirrorDocument) {
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
func (t mirrorTeller) announce(d *mirrorDocument) {
	if t.leads == nil || !t.leads() || t.events == nil || d.object.Name == "" || d.why() == nil {
		return
	}
	t.events.Record(record.Event{
		Type: core.EventTypeWarning, Reason: "MirrorError", Action: "Compile", Note: d.why().Error(),
		Regarding: core.ObjectReference{APIVersion: d.object.Resource.GroupVersion().String(), Kind: "RegistryMirror", Name: d.object.Name},
	})
}

// mirrorTarget is the state of one target's registry in a status.
type mirrorTarget struct {
	Registry string       `json:"registry"`
	State    string       `json:"state"`
	Since    *metav1.Time `json:"since,omitempty"`
	Message  string       `json:"message,omitempty"`
}

// mirrorReport is the desired status of a RegistryMirror.
type mirrorReport struct {
	object    record.Object
	condition metav1.Condition
	targets   []mirrorTarget
}

// reports returns the desired status of each RegistryMirror of the cluster.
func (m *mirrors) reports(states []health.State) []mirrorReport {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []mirrorReport
	for _, key := range m.keys() {
		d := m.documents[key]
		if d.object.Name == "" {
			continue
		}
		report := mirrorReport{object: d.object, condition: d.condition(), targets: []mirrorTarget{}}
		if d.good != nil && d.clash == nil {
			if alone, err := mirror.NewSet(d.good); err == nil {
				report.targets = targetsOf(alone.Registries(), states)
			}
		}
		list = append(list, report)
	}
	return list
}

// condition is the condition of the document: whether it is used.
func (d *mirrorDocument) condition() metav1.Condition {
	c := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Active", Message: "the mirror is active", ObservedGeneration: generationOf(d.text)}
	if why := d.why(); why != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Broken", why.Error()
		if d.state() == metrics.MirrorOutdated {
			c.Reason, c.Message = "Outdated", "the version before it is used: "+c.Message
		}
		c.Message = cut(c.Message, maxStatusMessage)
	}
	return c
}

func targetsOf(registries []string, states []health.State) []mirrorTarget {
	targets := make([]mirrorTarget, 0, len(registries))
	for _, registry := range registries {
		target := mirrorTarget{Registry: registry, State: "unknown", Message: "it has not been asked yet"}
		if i := slices.IndexFunc(states, func(s health.State) bool { return s.Registry == registry }); i >= 0 {
			target = mirrorTarget{Registry: registry, State: "answering", Since: &metav1.Time{Time: states[i].Since.UTC().Truncate(time.Second)}}
			if states[i].Phase != health.Closed {
				target.State = "resting"
				if states[i].Err != nil {
					target.Message = cut(states[i].Err.Error(), maxTargetMessage)
				}
			}
		}
		targets = append(targets, target)
	}
	return targets
}

// cut bounds a text that may be from an untrusted author.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// mirrorStatus writes the status of RegistryMirrors, and of no other kind.
type mirrorStatus struct {
	client  dynamic.Interface
	reports func() []mirrorReport
	changed gateway.Changing
	failed  func(error)
	written map[types.UID]string
}

// run writes changed statuses until ctx ends.
func (s *mirrorStatus) run(ctx context.Context) {
	for ctx.Err() == nil {
		changed := s.changed.Changed()
		s.round(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(statusPause):
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(statusResync):
		}
	}
}

// round writes each changed status.
func (s *mirrorStatus) round(ctx context.Context) {
	written := map[types.UID]string{}
	for _, report := range s.reports() {
		text := fmt.Sprintf("%+v %s", report.condition, encoded(report.targets))
		if s.written[report.object.UID] != text {
			if err := s.write(ctx, report); err != nil {
				s.failed(fmt.Errorf("write the status of RegistryMirror %s: %w", report.object.Name, err))
				continue
			}
		}
		written[report.object.UID] = text
	}
	s.written = written
}

func encoded(targets []mirrorTarget) []byte {
	text, err := json.Marshal(targets)
	if err != nil { // impossible: they are texts and times
		return nil
	}
	return text
}

func (s *mirrorStatus) write(ctx context.Context, report mirrorReport) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	client := s.client.Resource(report.object.Resource)
	current, err := client.Get(ctx, report.object.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if current.GetUID() != report.object.UID {
		return nil // another object of the same name
	}
	var there struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
			Targets    []mirrorTarget     `json:"targets"`
		} `json:"status"`
	}
	// An unreadable status is from a writer that does not follow the definition.
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(current.Object, &there); err != nil {
		there.Status.Conditions = nil
	}
	if !meta.SetStatusCondition(&there.Status.Conditions, report.condition) && string(encoded(there.Status.Targets)) == string(encoded(report.targets)) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		// With the version, concurrent changes of other writers are not lost.
		"metadata": map[string]any{"resourceVersion": current.GetResourceVersion()},
		"status":   map[string]any{"conditions": there.Status.Conditions, "targets": report.targets},
	})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, report.object.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
