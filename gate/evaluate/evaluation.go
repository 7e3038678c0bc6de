package evaluate

import (
	"context"
	"slices"

	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
)

// Reference is an image reference to evaluate.
type Reference struct {
	image.Ref
	// Registry reads the image's own repository.
	Registry Registry
	Prover   Prover
	// Evidence are the evidence repositories in order; none: the image's own.
	Evidence []image.Repository
	// Open opens an evidence repository other than the image's own.
	Open func(ctx context.Context, repository image.Repository) (Registry, error)
	// Rest reports that a registry did not answer recently; nil: unknown.
	Rest func(registry string) (why string, resting bool)
}

// Evaluation is the evaluation of one reference: it is resolved once and each claim query about
// it is answered once, however many containers and policies ask. One goroutine at a time uses it.
type Evaluation struct {
	search
	resolver   resolver
	content    imageContent
	target     *Target       // to request in parallel; nil for none
	primary    *repository   // the evidence repository that is searched first
	fallbacks  []*repository // searched in order while a check is not met
	unsearched int           // repositories beyond the bound
	result     Result        // so far
}

// Evaluate prepares the evaluation of a reference.
func (e *Evaluator) Evaluate(ref Reference) *Evaluation {
	scope := ref.Registry.Scope()
	out := &Evaluation{
		search:   search{Evaluator: e, prover: ref.Prover, generation: ref.Prover.Generation(), answers: answers{known: map[claimQuery]policy.Answer{}}},
		resolver: resolver{Evaluator: e, registry: ref.Registry, scope: scope, ref: ref.Ref, evidence: ref.Evidence},
		content:  imageContent{Evaluator: e, registry: ref.Registry, scope: scope},
	}
	out.result.answers = &out.answers
	out.own.name, out.own.registry, out.primary = ref.Repository(), ref.Registry, &out.own
	if len(ref.Evidence) > 0 {
		var evidence []image.Repository
		evidence, out.unsearched = bounded(ref.Evidence, ref.Repository())
		all := repositories(ref, evidence)
		out.primary, out.fallbacks = all[0], all[1:]
	}
	out.statements, out.answers.first = out.primary.name.String(), out.primary.name
	return out
}

// repositories returns the evidence repositories of a reference.
func repositories(ref Reference, evidence []image.Repository) []*repository {
	all := make([]*repository, len(evidence))
	for i, name := range evidence {
		all[i] = &repository{name: name, isFallback: i > 0}
		if name == ref.Repository() {
			all[i].registry = ref.Registry
		} else {
			all[i].open, all[i].rest = ref.Open, ref.Rest
		}
	}
	return all
}

// maxRepositories bounds where evidence about one reference is searched, one repository after
// another. A copy that hundreds of registries share would else keep a request
// at work for as long as it may take.
const maxRepositories = 8

// bounded returns the repositories to search, and the number of those left out. The
// image's own repository is always included.
func bounded(evidence []image.Repository, own image.Repository) ([]image.Repository, int) {
	if len(evidence) <= maxRepositories {
		return evidence, 0
	}
	first := slices.Clone(evidence[:maxRepositories])
	if slices.Contains(evidence, own) && !slices.Contains(first, own) {
		first[maxRepositories-1] = own
	}
	return first, len(evidence) - maxRepositories
}

// Add adds a check, and returns its position.
func (e *Evaluation) Add(check *policy.Check) int {
	e.result.checks = append(e.result.checks, check)
	return len(e.result.checks) - 1
}

// Checks returns the checks in the order of their positions.
func (e *Evaluation) Checks() []*policy.Check { return e.result.checks }

// SetTarget sets the mirror whose targets are requested; target must not be nil.
func (e *Evaluation) SetTarget(target *Target) {
	e.target, e.resolver.target, e.content.target = target, nil, nil
	if target.Route.Resolve == mirror.Target && e.resolver.isTag() {
		e.resolver.target, e.content.target = target, target
	}
}

// AtSource returns the digest that the tag resolves to at the source, if that is known.
func (e *Evaluation) AtSource() image.Digest {
	if !e.result.Source.IsZero() {
		return e.result.Source
	}
	known, err := e.Claims.Tags().Pin(e.resolver.scope, e.resolver.ref)
	if err != nil {
		return image.Digest{}
	}
	return known.Digest()
}

// Cached does the part of Run that the cache can answer, and reports whether that suffices: the
// digest, and facts that meet each check. It may wait for known keys that are looked up again.
func (e *Evaluation) Cached(ctx context.Context) (result *Result, ok bool) {
	started := e.Now()
	if err := panics.Catch(func() { ok = e.cached(ctx) }); err != nil {
		return nil, false // Run reports it
	}
	e.result.Duration = e.Now().Sub(started)
	return &e.result, ok
}

func (e *Evaluation) cached(ctx context.Context) bool {
	if ctx.Err() != nil || e.selectsPlatforms() {
		return false
	}
	pinned, err := e.resolver.cached(ctx)
	if err != nil {
		return false
	}
	data, ok := e.contentCache.Data(e.content.key(pinned, e.result.checks))
	if !ok {
		return false
	}
	e.result.Pinned, e.result.data = pinned, data
	for _, q := range questionsOf(e.result.checks) {
		key := claimQueryOf(pinned.Digest(), q)
		if e.answers.has(key) {
			continue
		}
		answer, ok := e.search.cached(ctx, pinned, key, q)
		if !ok {
			e.result.IsPartial = true
			answer.Gaps = []error{errNotAsked}
		}
		e.answers.set(key, answer)
	}
	if !e.decideCached(ctx) {
		return false
	}
	if e.resolver.isTag() {
		e.hit(claims.LayerTags)
	}
	return true
}

// decideCached reports whether the cached facts suffice for each check. Judges run
// later, on all images together. If a judge does not pass an image with any signature,
// peers and registries are asked then.
func (e *Evaluation) decideCached(ctx context.Context) bool {
	_, decided := e.Begin(ctx, PhaseDecide)
	defer decided()
	r := &e.result
	about := e.answers.about(r.Pinned.Digest())
	r.own = make([]policy.Decision, len(r.checks))
	for i, check := range r.checks {
		if _, decided := policy.Decided(check); decided || check.Judge == nil {
			r.own[i] = decide.Check(check, about)
			if check.NeedsProof() && r.own[i].Result != policy.Pass {
				return false
			}
			continue
		}
		hasFacts := func(q policy.Question) bool { return len(about(q).Facts) > 0 }
		if check.NeedsProof() && !slices.ContainsFunc(check.Questions(), hasFacts) {
			return false
		}
		r.IsPartial = true
		r.own[i] = policy.Decision{Check: check, Result: policy.Pass}
	}
	return !r.IsPartial || !r.Evidence().IsYoung(r.checks)
}

// restart goes on with other sources than the cache: the answers that it could not give are dropped.
func (e *Evaluation) restart() {
	e.result.IsPartial = false
	e.answers.dropMisses()
	e.window = e.maxStale(e.result.checks)
}

// Refuse ends an evaluation that cannot run.
func (e *Evaluation) Refuse(err error) *Result {
	e.restart()
	e.result.Err = err
	return &e.result
}

// Run resolves the reference, answers the claim queries of its checks, and decides each by the
// named digest. It does not repeat the lookups of Cached that found something.
func (e *Evaluation) Run(ctx context.Context) *Result {
	started := e.Now()
	e.restart()
	if err := panics.Catch(func() { e.run(ctx) }); err != nil {
		e.result.Err = err
	}
	if ctx.Err() != nil {
		e.result.markLate(ctx)
	}
	e.result.Duration = e.Now().Sub(started)
	return &e.result
}

func (e *Evaluation) run(ctx context.Context) {
	if e.target != nil {
		e.target.Begin(ctx)
	}
	compared := e.resolver.compareSource(ctx)
	defer func() { e.result.Source = compared() }()
	resolved, err := e.resolver.resolve(ctx, e.window)
	e.result.Pinned, e.result.Err, e.result.IsStale = resolved.Pinned, err, resolved.IsStale
	if resolved.IsStale {
		e.answers.markStale(claimQuery{}, resolved.At) // of the tag, not of a query
	}
	if err != nil {
		return
	}
	if e.target != nil && e.target.Chooses {
		e.target.BeginChoice(ctx, resolved.Digest())
	}
	read := e.beginData(ctx)
	defer read() // whatever the result of the verification
	e.search.run(ctx, e.primary, e.result.Pinned, questionsOf(e.result.checks))
	read()
	e.decide(ctx)
	e.renew(ctx)
	e.widen(ctx, e.primary)
	e.searchFallbacks(ctx)
	e.keepTag()
}

// beginData starts to read the image data that the checks need, in parallel with the
// search for evidence. The returned function waits for the end.
func (e *Evaluation) beginData(ctx context.Context) (wait func()) {
	key := e.content.key(e.result.Pinned, e.result.checks)
	data, ok := e.contentCache.Data(key)
	if ok {
		e.result.data = data
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.result.data, e.result.dataErr = e.contentCache.ReadData(ctx, e.content.reader(), e.result.Pinned, key)
	}()
	return func() { <-done }
}

// decide evaluates each check by the named digest.
func (e *Evaluation) decide(ctx context.Context) {
	_, decided := e.Begin(ctx, PhaseDecide)
	defer decided()
	r := &e.result
	if ctx.Err() != nil {
		r.markLate(ctx)
	}
	r.own = make([]policy.Decision, len(r.checks))
	for i, check := range r.checks {
		r.own[i] = r.decideBy(ctx, check, r.Pinned)
	}
}

// decideBy evaluates a check by one digest: by its judge, where it has one, about this image
// alone.
func (r *Result) decideBy(ctx context.Context, check *policy.Check, about image.Pinned) policy.Decision {
	if _, decided := policy.Decided(check); decided || check.Judge == nil {
		return decide.Check(check, r.answers.about(about.Digest()))
	}
	return Judge(ctx, check.Judge, []policy.Given{r.given(check, r.answers.about(about.Digest()))}).Decisions[0]
}

// renew repeats the lookups where an old cache entry would deny.
func (e *Evaluation) renew(ctx context.Context) {
	if e.renewAbout(ctx, e.result.Pinned, func(i int) bool { return e.result.own[i].Result == policy.Fail }) {
		e.decide(ctx)
	}
}

// renewAbout repeats the lookups about one digest for the checks that are denied, where old cache
// entries answered, and reports whether there were any.
func (e *Evaluation) renewAbout(ctx context.Context, about image.Pinned, isDenied func(i int) bool) bool {
	var again []policy.Question
	for i, check := range e.result.checks {
		if !check.NeedsProof() || !isDenied(i) {
			continue
		}
		for _, q := range check.Questions() {
			if e.answers.dropOld(claimQueryOf(about.Digest(), q)) {
				again = append(again, q)
			}
		}
	}
	if len(again) > 0 {
		e.bypass = true
		e.search.run(ctx, e.primary, about, again)
	}
	return len(again) > 0
}

// keepTag caches the digest of a tag that the registry returned, if it is
// verified and no check denies it.
func (e *Evaluation) keepTag() {
	if e.Stale == nil || e.result.Err != nil || !e.resolver.isTag() || e.resolver.target != nil || !e.answers.staleSince().IsZero() {
		return
	}
	if e.result.isVerified() {
		e.resolver.keep(e.result.Pinned.Descriptor())
	}
}

// Complete has the claim queries answered that the cache alone did not answer.
func (e *Evaluation) Complete(ctx context.Context) {
	if e.answers.hasMisses() {
		e.restart()
		e.search.run(ctx, e.primary, e.result.Pinned, questionsOf(e.result.checks))
	}
}

// Descendants returns the digests that an index lists, and those that nested indexes list;
// none for a manifest.
func (e *Evaluation) Descendants(ctx context.Context) ([]image.Digest, error) {
	return e.contentCache.Descendants(ctx, e.content.reader(), e.result.Pinned)
}
