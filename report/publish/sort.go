package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// wants reports whether a decision belongs in a report: its object exists, or is deleted.
func (p *Publisher) wants(d report.Decided) bool {
	s := d.Outcome.Subject
	if s == nil || d.Occasion.Undecided != "" || d.Occasion.DryRun || !d.Occasion.Allowed || d.Occasion.OnlyAsked() {
		return false // a denial creates or changes no object
	}
	if s.Operation == "CONNECT" || !slices.Contains([]string{"", "ephemeralcontainers", "resize"}, s.Subresource) {
		return false
	}
	return !isNoise(s.Group, s.Kind)
}

// isNoise reports whether a kind gets no reports: reports themselves, to avoid a loop, and kinds
// that are written continuously.
func isNoise(group, kind string) bool {
	for _, api := range policyreport.APIs() {
		if own, _, _ := strings.Cut(string(api), "/"); own == group {
			return true
		}
	}
	return group == "reports.kyverno.io" || kind == "Event" || kind == "Lease" && group == "coordination.k8s.io"
}

// Put is Take for callers that can wait. It adds the results of a scan, or restored ones from the
// decision log, and returns when there is capacity, or with ctx. No result is lost while the
// program runs, and newer results in reports stay.
func (p *Publisher) Put(ctx context.Context, d report.Decided) error {
	if !p.wants(d) {
		return nil
	}
	return p.sort(ctx, d, false)
}

// Remove removes the results of an object that was deleted at a time. It does nothing if reports
// are by policy, or if the object had a report of its own, which is deleted with it.
func (p *Publisher) Remove(ctx context.Context, of report.Resource, at time.Time) error {
	of = inPlace(of)
	workload, err := p.workload(ctx, of)
	if err != nil {
		return err
	}
	place, ok := p.options.Grouping.Place(result.Result{Resource: of}, workload)
	if !ok || p.options.Grouping == policyreport.ByPolicy {
		return nil
	}
	c := newChange(place)
	c.item(of).gone = at
	return p.pending.add(ctx, c)
}

// Keep removes the results of policies that are not in the list from a report.
func (p *Publisher) Keep(ctx context.Context, at policyreport.Place, policies []result.Policy) error {
	c := newChange(at)
	c.policies = policies
	return p.pending.add(ctx, c)
}

// sort converts a decision to results, and assigns them to their reports. justNow means a current
// decision: a created object has no report yet. A panic is returned as an error.
func (p *Publisher) sort(ctx context.Context, d report.Decided, justNow bool) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("internal error at a decision about %s, which is a defect: %v", d.Resource().Name, v)
		}
	}()
	of := d.Resource()
	if d.Outcome.Subject.Operation == "DELETE" {
		return p.Remove(ctx, of, d.Occasion.Time)
	}
	of = inPlace(of)
	workload, err := p.workload(ctx, of)
	if err != nil {
		return err
	}
	changes := map[policyreport.Place]*change{}
	to := func(r result.Result) *change {
		place, ok := p.options.Grouping.Place(r, workload)
		if !ok || place.Scope.Name != "" && place.Scope.UID == "" {
			return nil // nothing would ever delete the report
		}
		if changes[place] == nil {
			changes[place] = newChange(place)
		}
		return changes[place]
	}
	mayExempt := d.Outcome.Subject.Operation == "UPDATE" && !onlyMutates(&d.Outcome)
	for _, r := range result.Of(d) {
		// An update may be exempt because it does not worsen the object. The object's earlier
		// violations persist, and the scan detects when they end.
		if r.Policy.Unreported || mayExempt && r.Status == result.Skip && r.Exception == "" {
			continue
		}
		r.Resource = of
		if c := to(r); c != nil {
			c.item(of).add(entryOf(r))
		}
	}
	if d.Occasion.Process == report.ProcessScan && p.options.Grouping != policyreport.ByPolicy {
		to(result.Result{Resource: of}) // also where no rule matches any more
	}
	for _, c := range changes {
		c.fresh = justNow && d.Outcome.Subject.Operation == "CREATE" && d.Occasion.Process == report.ProcessAdmission && of.UID != "" && c.at.Scope.UID == of.UID
		if d.Occasion.Process == report.ProcessScan {
			one := c.item(of)
			one.whole, one.others = d.Occasion.Time, p.options.Others(d.Outcome.Subject)
		}
		if err := p.pending.add(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// onlyMutates reports whether an outcome has results of mutation rules alone, which have no violations.
func onlyMutates(o *gate.Outcome) bool {
	return len(o.Verdicts) == 0 && !slices.ContainsFunc(o.Rules, func(r policy.RuleResult) bool { return r.Kind != policy.MutateRule })
}

// inPlace returns the object as it exists in the cluster: a request for a namespace has the
// namespace itself in its namespace.
func inPlace(of report.Resource) report.Resource {
	if of.Kind == "Namespace" && of.APIVersion == "v1" {
		of.Namespace = ""
	}
	return of
}

// workload returns the workload of an object; zero for none. After some failed lookups it is the
// object's own owner reference.
func (p *Publisher) workload(ctx context.Context, of report.Resource) (report.Resource, error) {
	if p.options.Grouping != policyreport.ByWorkload || of.Owner == nil {
		return report.Resource{}, nil
	}
	owner := of.Owner
	for try := range lookTries {
		found, err := p.options.Workloads.Workload(ctx, of)
		if err == nil {
			owner = found
			break
		}
		if ctx.Err() != nil {
			return report.Resource{}, fmt.Errorf("report on %s %s: %w", of.Kind, of.Name, ctx.Err())
		}
		p.options.Observer.Failed(err)
		pause(ctx, backoff(try+1))
	}
	if owner == nil {
		return report.Resource{}, nil
	}
	return report.Resource{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: of.Namespace, Name: owner.Name, UID: owner.UID}, nil
}

// backoff is the pause after so many attempts.
func backoff(tries int) time.Duration {
	wait := firstPause
	for range min(tries-1, 20) {
		wait = min(2*wait, longestPause)
	}
	return wait
}

// pause waits, at most until ctx ends.
func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
