package equality

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/sampling"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/world"
	"github.com/quaymaster/quaymaster/policy/deletion"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/policy/suite/trial"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/workload"
)

// objectTime bounds the evaluation of one object: nothing is fetched, so that one is done in microseconds.
const objectTime = 10 * time.Second

// side is one of the two forms of a policy, compiled once.
type side struct {
	evaluator *evaluation.Evaluator
	world     *world.World
	targets   []workload.Object // the existing objects
}

// compile compiles the documents of a side, with those that both look up.
func compile(ctx context.Context, documents []workload.Object, o Options) (*side, error) {
	const why = "images are not read by this check"
	store, err := trust.New(trust.Options{Secrets: engine.NewResources()})
	if err != nil {
		return nil, err
	}
	prover, err := engine.NewProver(store.Snapshot())
	if err != nil {
		return nil, err
	}
	in := trial.NewInput(trial.Advice{Missing: "no document has it", Object: "give it with -f FILE", Value: "leave the rule to the policy's suite"})
	for _, list := range [][]workload.Object{documents, o.Beside} {
		for _, object := range list {
			if err := in.AddPolicy(object); err != nil {
				return nil, fmt.Errorf("%s: %w", object.Source(), err)
			}
		}
	}
	if len(in.Policies) == 0 {
		return nil, errors.New("no policy in it")
	}
	// A user is set, so that rules that select users are compiled with them.
	options, config := in.Options(trial.Setup{
		Registries: trial.Nowhere{Why: why}, Prover: prover, Offline: true, Timeout: objectTime, User: &policy.User{}, Warn: func(string) {},
	})
	options.Now = sampling.Now
	config.Deletions = deletion.Decider{Unprotected: true}
	around := world.New(in.Beside(), o.Live)
	around.Use(&options, &config)
	evaluator, err := in.Compile(ctx, options, config, func(string, error) {})
	if err := errors.Join(append(in.Unread, err)...); err != nil {
		return nil, err
	}
	return &side{evaluator: evaluator, world: around}, nil
}

// kinds are those that the side's policies match.
func (s *side) kinds() (all []policy.Target) {
	for place := range s.evaluator.Policies() {
		all = append(all, s.evaluator.Targets(place)...)
	}
	return all
}

// exist sets the objects that exist besides those of requests.
func (s *side) exist(objects []map[string]any) error {
	s.targets = nil
	for _, content := range objects {
		object, err := sampling.AsIs(content)
		if err != nil {
			return err
		}
		s.targets = append(s.targets, object)
	}
	s.world.Set(s.targets)
	return nil
}

// verdicts evaluates requests.
func (s *side) verdicts(ctx context.Context, requests []gate.Request) ([]Verdict, error) {
	answers, err := s.evaluator.Decide(ctx, requests, s.targets)
	if err != nil {
		return nil, err
	}
	all := make([]Verdict, len(answers))
	for i := range answers {
		all[i] = verdictOf(&answers[i], requests[i].Object)
	}
	return all, ctx.Err()
}
