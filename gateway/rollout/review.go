package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/rollout"
	"github.com/quaymaster/quaymaster/scan/dryrun"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// Review implements admission.ImpactAnalysis: a policy with denials that are found in time is
// refused.
type Review struct {
	config Config
	dryRun DryRun
	turn   chan struct{} // holds one: the evaluations of many replicas share their registries
}

// NewReview makes a Review.
func NewReview(c Config, dryRun DryRun) *Review {
	return &Review{config: c, dryRun: dryRun, turn: make(chan struct{}, 1)}
}

const (
	// reviewTime bounds an evaluation within the policy webhook (the API server allows ten
	// seconds), and reviewObjects bounds its objects. If it takes longer, the policy is held and
	// the leader evaluates it.
	reviewTime    = 6 * time.Second
	reviewMargin  = 1500 * time.Millisecond
	reviewObjects = 20_000
)

// Analyze implements admission.ImpactAnalysis.
func (d *Review) Analyze(ctx context.Context, raw []byte) (warnings []string, err error) {
	c := d.config
	now := c.Effective
	entry := c.Catalog.Compile(catalog.Document{Text: raw, Source: "the request"})
	if entry.State != catalog.Ours || entry.Policy == nil {
		return nil, nil
	}
	if audits(now.sources, kinds.FromCluster+"/") {
		return []string{"quaymaster: this policy only audits: the setting policies.audit names the cluster's policies"}, nil
	}
	approvals := now.approvals.Load()
	v, err := rollout.Read(entry.Policy, raw)
	if err != nil || approvals.Of(v, time.Now()) == rollout.Itself {
		return nil, err
	}
	until := time.Now().Add(reviewTime)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-reviewMargin).Before(until) {
		until = deadline.Add(-reviewMargin)
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	const waits = "quaymaster: this policy is pending impact analysis: the previous version remains active, and a new policy audits only"
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return []string{waits}, nil
	}
	list, before := c.withoutBefore(entry.Policy, v.ID)
	found, err := d.dryRun.Run(ctx, list, before, reviewObjects)
	switch {
	case err != nil:
		c.failed("a policy cannot be tried", err)
		return []string{waits}, nil
	case found.StoppedCount > 0:
		c.Metrics.PolicyAnalyzed(metrics.AnalysisRefused)
		return nil, errors.New(refusal(found))
	case !found.Certain():
		return []string{waits + " (" + found.Summary() + ")"}, nil
	}
	return nil, nil
}

// refusal formats the message to the author of a policy.
func refusal(found dryrun.Result) string {
	text := found.Summary() + "\nnext: " + nextSteps + "\n"
	for i, f := range found.Stopped {
		if i == maxRefusal {
			text += fmt.Sprintf("and %d more\n", found.StoppedCount-i)
			break
		}
		text += f.String() + "\n"
	}
	for i, f := range found.Unlooked {
		if i == maxUnlooked {
			break
		}
		text += "not looked at: " + f.String() + "\n"
	}
	return text
}

// maxRefusal and maxUnlooked bound the workloads that a refusal names.
const (
	maxRefusal  = 20
	maxUnlooked = 3
)
