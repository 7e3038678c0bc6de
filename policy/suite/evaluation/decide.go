package evaluation

import (
	"context"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Decide evaluates requests against all policies. The requests are whole: values change nothing of them. Rules may
// change the targets. The state that a request leaves is also one that rules which delete decide about, as a stored
// object: without a request.
func (e *Evaluator) Decide(ctx context.Context, requests []gate.Request, targets []workload.Object) ([]Answer, error) {
	places := make([]int, len(e.config.Policies))
	deletes := false
	for i := range places {
		places[i], deletes = i, deletes || len(e.Policy(i).Deletions) > 0
	}
	with, err := e.gate("", places)
	if err != nil {
		return nil, err
	}
	of := existing{Existing{Targets: targets, Sources: e.config.Existing.Sources}, e.labels}
	answers := make([]Answer, len(requests))
	for i, outcome := range with.gate.DecideAll(ctx, requests, nil) {
		answers[i].Object = requests[i].Object
		answers[i].fill(ctx, with.set, outcome, of)
		if s := outcome.Subject; deletes && s != nil && s.Subresource == "" && !requests[i].Object.IsZero() {
			stored := Answer{Outcome: gate.Outcome{Subject: &policy.Subject{
				Group: s.Group, Version: s.Version, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name,
				NamespaceLabels: s.NamespaceLabels, NamespaceKnown: s.NamespaceKnown, Time: s.Time,
			}}}
			stored.delete(ctx, with.set, requests[i], e.config.Deletions)
			answers[i].Rules = append(answers[i].Rules, stored.Rules...)
		}
	}
	return answers, nil
}
