package rollout

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/rollout"
	"github.com/quaymaster/quaymaster/scan/dryrun"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

const (
	// dryRunTime bounds one evaluation by the leader, and tenantDryRunTime one of a namespace's own
	// policy. A tenant may name images of registries that are slow on purpose, and other policies
	// wait for it.
	dryRunTime, tenantDryRunTime = 10 * time.Minute, 3 * time.Minute
	// retryPause is the time between two evaluations of a policy that would deny running
	// workloads; unsurePause, of one with incomplete results.
	retryPause  = 5 * time.Minute
	unsurePause = time.Minute
	// maxUnsure bounds the evaluations with incomplete results; then the policy is in force. An
	// unavailable registry delays a policy, but does not drop it.
	maxUnsure = 3
	// checkInterval is the time between two checks for held policies, in addition to changes.
	checkInterval = 10 * time.Second
	// maxNamed bounds the workloads that an event or a log line names.
	maxNamed = 10
)

// DryRun evaluates policies against running workloads.
type DryRun interface {
	Run(ctx context.Context, now, before []*policy.Policy, most int) (dryrun.Result, error)
}

// Analysis is the component that evaluates policies that are not in force yet against running
// workloads, on the leader, and approves those that deny none.
type Analysis struct {
	gateway.OnLeader
	config Config
	open   func(context.Context) (DryRun, func(), error)
	dryRun DryRun
	of     map[string]tried
}

// NewAnalysis makes an Analysis. open waits until workloads can be evaluated, and returns a function
// that ends that; the dry run is nil if the context ended first.
func NewAnalysis(c Config, open func(context.Context) (DryRun, func(), error)) *Analysis {
	return &Analysis{config: c, open: open, of: map[string]tried{}}
}

// Run evaluates policies until ctx ends.
func (t *Analysis) Run(ctx context.Context) error {
	c := t.config
	dryRun, end, err := t.open(ctx)
	defer end()
	switch {
	case err != nil:
		c.Log.Error("policies cannot be tried: those that are held stay so", slog.String("error", err.Error()))
		return nil
	case dryRun == nil:
		return nil
	}
	t.dryRun, t.of = dryRun, map[string]tried{}
	for ctx.Err() == nil {
		changed := c.Policies.Changed()
		if err := t.round(ctx, changed); err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			c.failed("rollout approvals cannot be stored", err)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(checkInterval):
		}
	}
	return nil
}

// tried is the result for one version.
type tried struct {
	hash   string
	unsure int
	next   time.Time
}

// round approves the policies that need no evaluation, evaluates the held ones, and stores the
// results. It ends early when policies have changed.
func (t *Analysis) round(ctx context.Context, changed <-chan struct{}) error {
	c := t.config
	approvals, version, err := c.Approvals.load(ctx)
	now := time.Now()
	there, all, failed := c.Effective.approvable(c.Catalog)
	if failed != nil {
		c.Log.Debug("a document has no version", slog.String("error", failed.Error()))
	}
	unwritten := err != nil
	switch {
	case errors.Is(err, errNone), errors.Is(err, errDamaged):
		approvals = c.Effective.approvals.Load()
		if approvals == nil { // the guard starts: existing policies are approved
			approvals = rollout.New(versionsOf(there)...)
			c.Log.Info("the guard begins: the policies that are there are approved", slog.Int("policies", len(there)), slog.String("since", err.Error()))
		}
	case err != nil:
		return err
	}
	var plain []rollout.Version
	var waiting []string
	for id, each := range there {
		before, known := approvals.Before(id)
		switch {
		case known && before.Hash == each.version.Hash:
		case approvals.Of(each.version, now) == rollout.Itself:
			plain = append(plain, each.version)
		default:
			waiting = append(waiting, id)
		}
	}
	maps.DeleteFunc(t.of, func(id string, _ tried) bool { return !slices.Contains(waiting, id) })
	next := approvals.Approve(plain...).There(now, all...)
	if !next.Equal(approvals) || unwritten {
		if err := c.Approvals.save(ctx, next, version); err != nil {
			return err
		}
	}
	if !next.Equal(c.Effective.approvals.Load()) {
		c.approve("", next)
	}
	return t.tryAll(ctx, changed, waiting, there)
}

func versionsOf(there map[string]candidate) []rollout.Version {
	var list []rollout.Version
	for _, c := range there {
		list = append(list, c.version)
	}
	return list
}

// tryAll evaluates the due policies, and approves each at once. When policies have changed, it
// ends after the current evaluation: another one may now have precedence.
func (t *Analysis) tryAll(ctx context.Context, changed <-chan struct{}, waiting []string, there map[string]candidate) error {
	for _, id := range t.inOrder(waiting, there) {
		c := there[id]
		now := t.of[id]
		if now.hash != c.version.Hash {
			now = tried{hash: c.version.Hash}
		}
		if time.Now().Before(now.next) {
			continue
		}
		approved, err := t.analyze(ctx, c, &now)
		t.of[id] = now
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !approved {
			t.config.failed("a policy cannot be tried", err)
		} else if err := t.approve(ctx, c.version); err != nil {
			return err
		}
		select {
		case <-changed:
			return nil
		default:
		}
	}
	return nil
}

// inOrder sorts the cluster's policies before those of namespaces, so that no tenant delays one
// of them. Within these, the policies with the oldest evaluation come first.
func (t *Analysis) inOrder(waiting []string, there map[string]candidate) []string {
	isTenant := func(id string) int { return min(1, len(there[id].policy.Namespace)) }
	return slices.SortedFunc(slices.Values(waiting), func(a, b string) int {
		return cmp.Or(isTenant(a)-isTenant(b), t.of[a].next.Compare(t.of[b].next), cmp.Compare(a, b))
	})
}

// approve stores the approval of a version.
func (t *Analysis) approve(ctx context.Context, v rollout.Version) error {
	approvals, version, err := t.config.Approvals.load(ctx)
	if err != nil {
		return err
	}
	approvals = approvals.Approve(v)
	if err := t.config.Approvals.save(ctx, approvals, version); err != nil {
		return err
	}
	t.config.approve("", approvals)
	return nil
}

// analyze evaluates one policy and records the result.
func (t *Analysis) analyze(ctx context.Context, of candidate, now *tried) (approved bool, err error) {
	c := t.config
	most := dryRunTime
	if of.policy.Namespace != "" {
		most = tenantDryRunTime
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	now.next = time.Now().Add(retryPause)
	list, before := c.withoutBefore(of.policy, of.version.ID)
	found, err := t.dryRun.Run(ctx, list, before, 0)
	if err != nil {
		return false, err
	}
	attrs := []any{slog.String("policy", of.version.ID), slog.String("analysis", found.Summary())}
	switch {
	case found.StoppedCount > 0:
		c.Metrics.PolicyAnalyzed(metrics.AnalysisHeld)
		c.Log.Warn("a policy is held: "+nextSteps, append(attrs, slog.Any("stops", namesOf(found.Stopped)))...)
		c.report(of, "PolicyHeld", heldNote(found))
		return false, nil
	case found.Certain() || found.Whole && found.Why != "":
		c.Metrics.PolicyAnalyzed(metrics.AnalysisApproved)
		c.Log.Info("a policy was tried and is in force", attrs...)
		return true, nil
	}
	c.Metrics.PolicyAnalyzed(metrics.AnalysisUnsure)
	now.unsure++
	if now.unsure < maxUnsure {
		now.next = time.Now().Add(unsurePause)
		c.Log.Warn("a policy is held: not everything could be looked at; it is tried again", append(attrs, slog.Any("unknown", namesOf(found.Unlooked)))...)
		return false, nil
	}
	c.Log.Warn("a policy is in force although not everything could be looked at", append(attrs, slog.Any("unknown", namesOf(found.Unlooked)))...)
	c.report(of, "PolicyUntried", found.Summary())
	return true, nil
}

// nextSteps lists the remedies for a held policy.
const nextSteps = "fix the listed workloads, set the policy to Audit, or accept it with the annotation " + rollout.Annotation + ": " + rollout.Accepted

func heldNote(found dryrun.Result) string {
	note := "held: " + found.Summary()
	for _, f := range first(found.Stopped) {
		note += "\n" + f.String()
	}
	return note + "\nnext: " + nextSteps
}

func namesOf(list []dryrun.Found) []string {
	var lines []string
	for _, f := range first(list) {
		lines = append(lines, f.String())
	}
	return lines
}

func first(list []dryrun.Found) []dryrun.Found { return list[:min(len(list), maxNamed)] }

// report writes an event about a policy.
func (c Config) report(of candidate, reason, note string) {
	if c.Events == nil {
		return
	}
	c.Events.Record(record.Event{Type: core.EventTypeWarning, Reason: reason, Action: "Try", Regarding: kinds.Reference(of.policy), Note: note})
}

// withoutBefore returns the two sides of the comparison: the policies with the new version, and
// the current ones in its place.
func (c Config) withoutBefore(p *policy.Policy, id string) (now, before []*policy.Policy) {
	now = []*policy.Policy{p}
	var others []*policy.Policy
	if set := c.Policies.Policies(); set != nil {
		for _, each := range set.Policies() {
			switch {
			case each.ID() == id:
				if each.AuditedBy == "" {
					before = append(before, each)
				}
			case each.Kind == p.Kind && each.AuditedBy == "":
				others = append(others, each)
			}
		}
	}
	if p.Kind != "ClusterImagePolicy" {
		return now, before
	}
	// Images that no ClusterImagePolicy matches may be denied because there is one.
	return c.withUnmatched(now, others), c.withUnmatched(before, others)
}

// withUnmatched adds the policy for images that none of the ClusterImagePolicies matches.
func (c Config) withUnmatched(list, others []*policy.Policy) []*policy.Policy {
	made, err := c.Effective.beside(slices.Concat(list, others))
	if err != nil {
		return list
	}
	return slices.Concat(list, made)
}
