package trial

import (
	"context"
	"errors"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/policy/suite/fixtures"
)

// Setup are the settings of a trial.
type Setup struct {
	// Registries and Prover verify images; Nowhere opens no connection. Both are required.
	Registries gate.Registries
	Prover     gate.Prover
	// Values replace look-ups and fields of the request, User is the requesting user; nil for none.
	Values *fixtures.Values
	User   *policy.User
	// Offline: no connection is opened for a policy.
	Offline bool
	// Timeout bounds the evaluation of one object.
	Timeout time.Duration
	// Warn receives messages, each once.
	Warn func(message string)
}

// Options are those of compilers and evaluators, with the look-ups from the documents.
func (r *Input) Options(s Setup) (engine.CompilerOptions, evaluation.Config) {
	images := &engine.RuleImages{}
	images.Use(gate.Config{Registries: s.Registries, State: gate.Fixed{Prover: s.Prover}})
	options := engine.CompilerOptions{Images: images, Manifests: manifests.Options{Signatures: images}, Kinds: r, Offline: s.Offline}
	r.answer(&options)
	config := evaluation.Config{
		Registries: s.Registries, Prover: s.Prover, Policies: r.Policies, Exceptions: r.Exceptions,
		Values: s.Values, NoOldObject: true, Stored: true, User: s.User, Labels: r.Known.Labels, Scopes: r.scopes,
		Options: []gate.Option{gate.WithTimeout(s.Timeout)},
	}
	config.Scopes.Warn = once(s.Warn)
	return options, config
}

// once returns a function that passes each message on once: an object may be evaluated several times.
func once(warn func(message string)) func(message string) {
	done := map[string]bool{}
	return func(message string) {
		if !done[message] {
			done[message] = true
			warn(message)
		}
	}
}

// Compile compiles the policies. Those that do not compile are added to Unread; unread receives the
// cause where a TUF repository that a TrustRoot names is not read.
func (r *Input) Compile(
	ctx context.Context, options engine.CompilerOptions, config evaluation.Config, unread func(what string, err error),
) (*evaluation.Evaluator, error) {
	compilers, err := engine.NewCompilers(options)
	if err != nil {
		return nil, err
	}
	loaded := engine.Documents{Compilers: compilers}
	for _, object := range r.Roots {
		if err := loaded.Add(object); err != nil {
			return nil, err
		}
	}
	config.Compilers = compilers
	evaluator, err := evaluation.New(config)
	if err != nil {
		return nil, err
	}
	for _, p := range evaluator.Unread() {
		r.Unread = append(r.Unread, p.Err)
	}
	if err := errors.Join(r.Unread...); err != nil && len(evaluator.Policies()) == 0 {
		return nil, err
	}
	loaded.ReadRoots(ctx, options.Offline, unread)
	return evaluator, nil
}

// Nowhere opens no session.
type Nowhere struct {
	// Why is the reason, for users.
	Why string
}

// Open implements gate.Registries.
func (n Nowhere) Open(_ context.Context, _ gate.Access, repository image.Repository) (gate.Session, error) {
	return nil, &image.Error{Kind: image.Unavailable, Op: "open", On: repository.String(), Err: errors.New(n.Why)}
}
