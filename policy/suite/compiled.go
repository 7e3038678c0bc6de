package suite

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy/deletion"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/workload"
)

// compiledSuite is a suite with compiled policies. It is not safe for concurrent use.
type compiledSuite struct {
	*loaded
	evaluator *evaluation.Evaluator
	answers   map[string]*evaluation.Answer // by the object, the operation and the policies
}

// backing are the inputs of gates.
type backing struct {
	registries gate.Registries
	prover     gate.Prover
	swap       func(any) any // inserts throw-away keys into the compiled documents; nil for none
}

func compile(s *loaded, on backing) (*compiledSuite, error) {
	signatures := &engine.RuleImages{}
	signatures.Use(gate.Config{Registries: on.registries, State: gate.Fixed{Prover: on.prover}})
	compilers, err := engine.NewCompilers(engine.CompilerOptions{
		ConfigMaps: s.cluster, Secrets: s.cluster, Resources: s.cluster, HTTP: s.cluster, Kinds: s.cluster, Offline: true,
		Caller: s.cluster, Images: s.cluster, Manifests: manifests.Options{Signatures: signatures},
		Globals: engine.Globals{Expressions: globalcontext.Expressions{Store: s.cluster.Globals}},
	})
	if err != nil {
		return nil, err
	}
	compilers.Native = compilers.Native.Unbound()
	evaluator, err := evaluation.New(evaluation.Config{
		Deletions: deletion.Decider{Unprotected: true},
		Compilers: compilers, Registries: on.registries, Prover: on.prover, Rewrite: on.swap,
		Policies: s.policies, Exceptions: s.exceptionFiles, Values: s.values, User: s.user,
		Existing: evaluation.Existing{Targets: s.targets, Sources: evaluation.Sources{Resources: s.cluster}},
		Labels:   func(namespace string) (map[string]string, bool) { return s.cluster.Labels(namespace), true },
	})
	if err != nil {
		return nil, err
	}
	s.policies, s.warnings = evaluator.Policies(), append(s.warnings, evaluator.Warnings()...)
	for _, left := range evaluator.Unread() {
		s.apart = append(s.apart, notEvaluated{Policy: left.Policy, why: left.Err.Error()})
	}
	if len(s.policies) == 0 && len(s.apart) > 0 {
		var reasons []error
		for _, left := range s.apart {
			reasons = append(reasons, errors.New(left.why))
		}
		return nil, errors.Join(reasons...)
	}
	return &compiledSuite{loaded: s, evaluator: evaluator, answers: map[string]*evaluation.Answer{}}, nil
}

// evaluate returns the results for an object of the policy at an index and of those that are evaluated
// together with it.
func (t *compiledSuite) evaluate(ctx context.Context, object workload.Object, operation string, place int) *evaluation.Answer {
	return t.evaluateWith(ctx, object, operation, t.evaluator.Together(place, object.Name()))
}

// evaluateWith returns the results of policies that are evaluated together for an object, as the earlier
// ones leave it, and caches them. The policies are the first of those that are Together, or all.
func (t *compiledSuite) evaluateWith(ctx context.Context, object workload.Object, operation string, places []int) *evaluation.Answer {
	key := fmt.Sprintf("%s %s %s %v", keyOf(object), object.Source(), operation, places)
	if found, ok := t.answers[key]; ok {
		return found
	}
	before, err := t.evaluator.Before(ctx, object, operation, places[0])
	answer := evaluation.Answer{Object: object, Err: err}
	if err == nil {
		answer = t.evaluator.Evaluate(ctx, before, operation, places)
	}
	t.answers[key] = &answer
	return &answer
}
