package gateway

import (
	"context"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway/rollout"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// addAnalysis adds the analysis of policies that are not in force yet.
func (g *assembly) addAnalysis() {
	if !g.configuration.Has(config.RoleAdmission) || !g.configuration.Guards() {
		return
	}
	g.group.Add("guard", rollout.NewAnalysis(g.documents.Rollout(), func(ctx context.Context) (rollout.DryRun, func(), error) {
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
	return rollout.NewReview(g.documents.Rollout(), dryRun), nil
}
