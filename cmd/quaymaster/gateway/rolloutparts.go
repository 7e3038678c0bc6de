package gateway

import (
	"context"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway/rollout"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// rolloutConfig holds what the components of the rollout share.
func (g *assembly) rolloutConfig() rollout.Config {
	c := rollout.Config{
		Effective: g.policies.inForce, Catalog: g.policies.catalog, Policies: publishedPolicies{currentPolicies{g.state, &g.policies.changed}, g.policies},
		Approvals: rollout.NewStore(g.cluster.client.Typed.CoreV1().Secrets(g.configuration.Namespace)), Metrics: g.metrics, Log: g.log,
	}
	if g.cluster.events != nil {
		c.Events = g.cluster.events
	}
	return c
}

// publishedPolicies are the active policies, which can be published again.
type publishedPolicies struct {
	currentPolicies
	*policies
}

// Changed returns a channel that is closed when they change.
func (p publishedPolicies) Changed() <-chan struct{} { return p.currentPolicies.Changed() }

// addRollout makes policies wait until their approvals are loaded.
func (g *assembly) addRollout() {
	if g.cluster == nil || !g.configuration.Guards() {
		return
	}
	g.policies.await(rollout.Source)
	g.group.Add("guard", rollout.NewApprovals(g.rolloutConfig()))
}

// addAnalysis adds the analysis of policies that are not in force yet.
func (g *assembly) addAnalysis() {
	if !g.configuration.Has(config.RoleAdmission) || !g.configuration.Guards() {
		return
	}
	g.group.Add("guard", rollout.NewAnalysis(g.rolloutConfig(), func(ctx context.Context) (rollout.DryRun, func(), error) {
		key, ok := g.certificates.Key(ctx)
		if !ok {
			return nil, func() {}, nil
		}
		return g.dryRun(key, g.busy)
	}))
}

// review makes the evaluation of the policy endpoint; nil without the guard.
func (g *assembly) review(key []byte) (admission.ImpactAnalysis, error) {
	if g.cluster == nil || !g.configuration.Guards() {
		return nil, nil
	}
	dryRun, end, err := g.dryRun(key, nil)
	g.group.OnClose(end)
	if err != nil {
		return nil, err
	}
	return rollout.NewReview(g.rolloutConfig(), dryRun), nil
}
