package reporting

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
	"github.com/quaymaster/quaymaster/report/result"
)

// Removal removes the results of deleted policies, and of those whose reports were disabled, on the leader.
type Removal struct {
	Reports *publish.Publisher
	Stores  []*reports.Store
	Updates gateway.Changing // of policies
	// Active returns the active policies and overrides; nil until they are loaded.
	Active func() *set.Set
	Log    *slog.Logger
}

// Run removes results until ctx ends.
func (r Removal) Run(ctx context.Context) {
	var before []result.Policy
	for ctx.Err() == nil {
		next := r.Updates.Changed()
		there := r.reported()
		if there != nil && (before == nil || slices.ContainsFunc(before, func(p result.Policy) bool { return !slices.Contains(there, p) })) {
			r.keepReported(ctx, there)
		}
		before = there
		select {
		case <-ctx.Done():
			return
		case <-next:
		}
		timer := time.NewTimer(policiesPause) // several may be deleted together
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// policiesPause is the delay between the deletion of a policy and the search of reports.
const policiesPause = 10 * time.Second

// reported are the existing policies with reports, and the overrides; nil until they are loaded.
func (r Removal) reported() []result.Policy {
	set := r.Active()
	if set == nil {
		return nil
	}
	there := []result.Policy{}
	for _, p := range set.Policies() {
		if !p.Unreported {
			there = append(there, result.Policy{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name})
		}
	}
	for _, o := range set.Overrides() {
		there = append(there, result.Policy{Kind: result.OverrideKind, Name: o.Name})
	}
	return there
}

// keepReported searches all reports.
func (r Removal) keepReported(ctx context.Context, there []result.Policy) {
	failed := gateway.Warn(r.Log, "the results of deleted policies could not be removed from reports")
	for _, store := range r.Stores {
		for _, namespace := range []string{reports.Everywhere, ""} {
			failed(store.Each(ctx, namespace, policyreport.ManagedByLabel+"="+policyreport.ManagedBy, func(text []byte) error {
				at, first, err := locationOf(text)
				if err != nil || !first {
					return err
				}
				return r.Reports.Keep(ctx, at, there)
			}))
		}
	}
}

// locationOf returns the location of a report, and whether this is its first part.
func locationOf(text []byte) (policyreport.Place, bool, error) {
	var r struct {
		Metadata metav1.ObjectMeta     `json:"metadata"`
		Scope    *core.ObjectReference `json:"scope"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return policyreport.Place{}, false, fmt.Errorf("read a report: %w", err)
	}
	at := policyreport.Place{Namespace: r.Metadata.Namespace, Name: r.Metadata.Name}
	if s := r.Scope; s != nil {
		at.Scope = report.Resource{APIVersion: s.APIVersion, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, UID: string(s.UID)}
	}
	_, later := r.Metadata.Annotations[policyreport.PartOfAnnotation]
	return at, !later, nil
}
