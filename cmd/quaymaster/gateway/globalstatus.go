package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
)

// refreshGrain is the precision of the refresh time in a status: an entry that is called every
// second is not written every second.
const refreshGrain = time.Minute

// globalReport is the desired status of a GlobalContextEntry.
type globalReport struct {
	globalObject
	condition metav1.Condition
	refreshed time.Time // zero: never, or it is watched
}

// reports returns the desired status of each entry, from this replica's state.
func (g *globals) reports() []globalReport {
	g.mu.Lock()
	objects := maps.Clone(g.objects)
	g.mu.Unlock()
	watched := map[string]bool{}
	for _, entry := range g.store.Entries() {
		watched[entry.Name] = entry.Resource != nil
	}
	var list []globalReport
	for name, object := range objects {
		read, err := g.store.State(name)
		if watched[name] {
			read = time.Time{}
		}
		list = append(list, globalReport{object, globalCondition(object.generation, err), read.UTC().Truncate(refreshGrain)})
	}
	slices.SortFunc(list, func(a, b globalReport) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// globalCondition is Kyverno's, with a specific reason where it is not ready.
func globalCondition(generation int64, err error) metav1.Condition {
	c := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "Ready", ObservedGeneration: generation}
	if err == nil {
		return c
	}
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Failed", cut(err.Error(), maxStatusMessage)
	for reason, is := range map[string]error{
		"Broken": globalcontext.ErrBroken, "NotRead": globalcontext.ErrNotRead, "Stale": globalcontext.ErrStale,
		"TooLarge": globalcontext.ErrTooLarge, "Projection": globalcontext.ErrProjection,
	} {
		if known, ok := errors.AsType[*globalcontext.Error](err); ok && errors.Is(known.Reason, is) {
			c.Reason = reason
		}
	}
	return c
}

// tellStatus writes the status of the entries until ctx ends, while the gateway owns it.
func (g *globals) tellStatus(ctx context.Context, in *inTheCluster, failed func(error)) {
	reports := func() []globalReport {
		if !in.owners.writes(kinds.KyvernoGroup) {
			return nil
		}
		return g.reports()
	}
	(&globalStatus{client: in.client.Dynamic, reports: reports, changed: &g.status, failed: failed}).run(ctx)
}

// globalStatus writes the status of GlobalContextEntries. The leader runs it.
type globalStatus struct {
	client  dynamic.Interface
	reports func() []globalReport
	changed gateway.Changing
	failed  func(error)
	written map[types.UID]string
}

// run writes changed statuses until ctx ends.
func (s *globalStatus) run(ctx context.Context) {
	for ctx.Err() == nil {
		changed := s.changed.Changed()
		s.round(ctx)
		gateway.Idle(ctx, statusPause)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(statusResync):
		}
	}
}

// round writes each changed status.
func (s *globalStatus) round(ctx context.Context) {
	written := map[types.UID]string{}
	for _, report := range s.reports() {
		text := fmt.Sprintf("%+v %v", report.condition, report.refreshed)
		if s.written[report.UID] != text {
			if err := s.write(ctx, report); err != nil {
				s.failed(fmt.Errorf("write the status of GlobalContextEntry %s: %w", report.Name, err))
				continue
			}
		}
		written[report.UID] = text
	}
	s.written = written
}

func (s *globalStatus) write(ctx context.Context, report globalReport) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	client := s.client.Resource(report.Resource)
	current, err := client.Get(ctx, report.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if current.GetUID() != report.UID {
		return nil // another object of the same name
	}
	var there struct {
		Status struct {
			Conditions      []metav1.Condition `json:"conditions"`
			LastRefreshTime metav1.Time        `json:"lastRefreshTime"`
		} `json:"status"`
	}
	// An unreadable status is from a writer that does not follow the definition.
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(current.Object, &there); err != nil {
		there.Status.Conditions = nil
	}
	changed := meta.SetStatusCondition(&there.Status.Conditions, report.condition)
	status := map[string]any{"conditions": there.Status.Conditions}
	if !report.refreshed.IsZero() && !there.Status.LastRefreshTime.Time.Equal(report.refreshed) {
		status["lastRefreshTime"], changed = metav1.NewTime(report.refreshed), true
	}
	if !changed {
		return nil
	}
	// With the version, concurrent changes of other writers are not lost.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": current.GetResourceVersion()}, "status": status})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, report.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
