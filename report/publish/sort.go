package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// wants reports whether something is for a report: it is about an object that is there
// now, or that goes.
func (p *Publisher) wants(d report.Decided) bool {
	s := d.Outcome.Subject
	if s == nil || d.Occasion.Undecided != "" || d.Occasion.DryRun || !d.Occasion.Allowed || d.Occasion.OnlyAsked() {
		return false // what was denied leaves no object, or leaves it as it is
	}
	if s.Operation == "CONNECT" || !slices.Contains([]string{"", "ephemeralcontainers", "resize"}, s.Subresource) {
		return false
	}
	return !isNoise(s.Group, s.Kind)
}

// isNoise reports whether objects of the kind get no report: reports, whose writing
// would be told of in reports, and what is written all the time.
func isNoise(group, kind string) bool {
	for _, api := range policyreport.APIs() {
		if own, _, _ := strings.Cut(string(api), "/"); own == group {
			return true
		}
	}
	return group == "reports.kyverno.io" || kind == "Event" || kind == "Lease" && group == "coordination.k8s.io"
}

// Put is Take for who can wait: it returns when there is room for what the scan found
// out about an object, or for what the decision log knows from before, or with ctx.
// Nothing of it is lost while the program runs, and what reports say that is newer stays.
func (p *Publisher) Put(ctx context.Context, d report.Decided) error {
	if !p.wants(d) {
		return nil
	}
	return p.sort(ctx, d, false)
}

// Forget takes away what reports say about an object that is gone, since a time. Where
// they are by policy, or the object had a report of its own, which goes with it, there
// is nothing to do.
func (p *Publisher) Forget(ctx context.Context, of report.Resource, at time.Time) error {
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

// Keep takes away what a report says under policies that are none of those there are.
func (p *Publisher) Keep(ctx context.Context, at policyreport.Place, policies []result.Policy) error {
	c := newChange(at)
	c.policies = policies
	return p.pending.add(ctx, c)
}

// sort puts what was decided into words, and to the reports that they belong to. Of what
// was decided just now, an object that is created has no report yet. A panic is an error
// like any other.
func (p *Publisher) sort(ctx context.Context, d report.Decided, justNow bool) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("internal error at what was decided about %s, which is a defect: %v", d.Resource().Name, v)
		}
	}()
	of := d.Resource()
	if d.Outcome.Subject.Operation == "DELETE" {
		return p.Forget(ctx, of, d.Occasion.Time)
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
			return nil // nothing would ever take the report away
		}
		if changes[place] == nil {
			changes[place] = newChange(place)
		}
		return changes[place]
	}
	for _, r := range result.Of(d) {
		// An update may be let through because it makes nothing worse: what was held
		// against the object before still is, and the scan says if that is over.
		if d.Outcome.Subject.Operation == "UPDATE" && r.Status == result.Skip && r.Exception == "" {
			continue
		}
		r.Resource = of
		if c := to(r); c != nil {
			c.item(of).say(saidOf(r))
		}
	}
	if d.Occasion.Process == report.ProcessScan && p.options.Grouping != policyreport.ByPolicy {
		to(result.Result{Resource: of}) // also where no rule says anything any more
	}
	for _, c := range changes {
		c.fresh = justNow && d.Outcome.Subject.Operation == "CREATE" && d.Occasion.Process == report.ProcessAdmission && of.UID != "" && c.at.Scope.UID == of.UID
		if d.Occasion.Process == report.ProcessScan {
			c.item(of).whole = d.Occasion.Time
		}
		if err := p.pending.add(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// inPlace returns an object as it is known to its cluster: a request about a namespace
// says that the namespace is in itself.
func inPlace(of report.Resource) report.Resource {
	if of.Kind == "Namespace" && of.APIVersion == "v1" {
		of.Namespace = ""
	}
	return of
}

// workload returns for whom an object runs; zero for nobody. After some tries it is
// whom the object names.
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

// backoff is how long to wait after so many tries.
func backoff(tries int) time.Duration {
	wait := firstPause
	for range min(tries-1, 20) {
		wait = min(2*wait, longestPause)
	}
	return wait
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
