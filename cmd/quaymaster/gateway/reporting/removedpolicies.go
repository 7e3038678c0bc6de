package reporting

import (
	"context"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// RemoveResults removes the results of deleted policies from reports until ctx ends.
func (r *Records) RemoveResults(ctx context.Context) {
	if r.Reports == nil {
		return
	}
	var before []result.Policy
	for ctx.Err() == nil {
		next := r.options.Documents.Policies.Updates.Changed()
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

// reported are the existing policies and overrides; nil until they are loaded.
func (r *Records) reported() []result.Policy {
	set := r.options.Documents.Active()
	if set == nil {
		return nil
	}
	there := []result.Policy{}
	for _, p := range set.Policies() {
		there = append(there, result.Policy{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name})
	}
	for _, o := range set.Overrides() {
		there = append(there, result.Policy{Kind: result.OverrideKind, Name: o.Name})
	}
	return there
}

// keepReported searches all reports.
func (r *Records) keepReported(ctx context.Context, there []result.Policy) {
	failed := gateway.Warn(r.options.Log, "what policies said that are gone was not taken out of reports")
	for _, store := range r.Stores {
		for _, namespace := range []string{reports.Everywhere, ""} {
			failed(store.Each(ctx, namespace, policyreport.ManagedByLabel+"="+policyreport.ManagedBy, func(text []byte) error {
				at, first, err := reporting.PlaceOf(text)
				if err != nil || !first {
					return err
				}
				return r.Reports.Keep(ctx, at, there)
			}))
		}
	}
}
