package suite

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/workload"
)

// trial is a suite with compiled policies. It is not safe for concurrent use.
type trial struct {
	*loaded
	bench   *evaluation.Bench
	answers map[string]*evaluation.Answer // by the object, the operation and the policies
}

// backing are the inputs of gates.
type backing struct {
	registries gate.Registries
	prover     gate.Prover
	swap       func(any) any // inserts throw-away keys into the compiled documents; nil for none
}

func newTrial(s *loaded, on backing) (*trial, error) {
	compilers, err := engine.NewCompilers(engine.CompilerOptions{
		ConfigMaps: s.cluster, Secrets: s.cluster, Resources: s.cluster, HTTP: s.cluster, Kinds: s.cluster, Offline: true,
		Caller: s.cluster, Images: s.cluster, Globals: engine.Globals{Expressions: globalcontext.Expressions{Store: s.cluster.globals}},
	})
	if err != nil {
		return nil, err
	}
	asked, err := evaluation.New(evaluation.Config{
		Compilers: compilers, Registries: on.registries, Prover: on.prover, Rewrite: on.swap,
		Policies: s.policies, Exceptions: s.exceptionFiles, Values: s.values, User: s.user, Targets: s.targets,
		Labels: func(namespace string) (map[string]string, bool) { return s.cluster.labels(namespace), true },
	})
	if err != nil {
		return nil, err
	}
	return &trial{loaded: s, bench: asked, answers: map[string]*evaluation.Answer{}}, nil
}

// ask returns the results of the policies at the indexes for an object, and caches them.
func (t *trial) ask(ctx context.Context, object workload.Object, operation string, places []int) *evaluation.Answer {
	key := fmt.Sprintf("%s %s %s %v", keyOf(object), object.Source(), operation, places)
	if found, ok := t.answers[key]; ok {
		return found
	}
	answer := t.bench.Ask(ctx, object, operation, places)
	t.answers[key] = &answer
	return &answer
}
