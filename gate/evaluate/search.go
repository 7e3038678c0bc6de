package evaluate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/evidence"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// search answers the claim queries about one reference.
type search struct {
	*Evaluator
	prover     Prover
	generation string     // of the prover
	own        repository // of the image
	statements string     // the evidence repository that is searched first: statements are cached for it alone
	answers    answers
	window     time.Duration // maximum age of stale facts
	bypass     bool          // no cached claim answers a query
}

// pendingQuery is a claim query with a resolved authority and no cached answer.
type pendingQuery struct {
	evidence.Query
	key      claimQuery
	query    claims.Query
	at       *repository
	registry Registry // for the repository
}

// run answers the queries about one digest: from the cache, then from the shared store and
// other replicas, else by one search in each evidence repository and one verification for
// each authority.
func (s *search) run(ctx context.Context, at *repository, pinned image.Pinned, questions []policy.Question) {
	var missing []*pendingQuery
	var asked map[claimQuery]bool
	if at.isFallback {
		asked = map[claimQuery]bool{}
	}
	for _, q := range questions {
		key := claimQueryOf(pinned.Digest(), q)
		switch {
		case asked[key], !at.isFallback && s.answers.has(key):
			continue
		case at.isFallback:
			asked[key] = true
		}
		pending, answer, done := s.lookup(ctx, at, pinned, q)
		s.add(at, key, answer)
		if !done {
			missing = append(missing, pending)
		}
	}
	if len(missing) > 0 {
		missing = s.askReplicas(ctx, missing, s.Claims.AskStore)
		missing = s.askReplicas(ctx, missing, s.Claims.AskPeers)
		s.findOrStale(ctx, missing, func(ctx context.Context, these []*pendingQuery) { s.find(ctx, pinned, these) })
	}
}

// add records the answer of an evidence repository: the first one's, or an addition to it.
func (s *search) add(from *repository, key claimQuery, answer policy.Answer) {
	if from.isFallback {
		s.answers.merge(key, answer, from.name)
	} else {
		s.answers.set(key, answer)
	}
}

// lookup resolves the authority of a query and consults the cache.
func (s *search) lookup(ctx context.Context, at *repository, pinned image.Pinned, q policy.Question) (*pendingQuery, policy.Answer, bool) {
	authority, hash, err := s.authority(ctx, q.Authority)
	if err != nil {
		return nil, policy.Answer{Gaps: []error{err}}, true // it names the authority
	}
	pending := &pendingQuery{
		Query: evidence.Query{Question: q, Resolved: authority, Key: s.claimKey(pinned, hash, q)}, key: claimQueryOf(pinned.Digest(), q), at: at,
	}
	where := at
	if len(q.Sources) > 0 { // the policy names them; the workload's Secrets do not count elsewhere
		where = &s.own
	}
	pending.registry, err = where.session(ctx)
	if err != nil {
		return nil, policy.Answer{Gaps: []error{attest.Gap{Repository: where.name, Where: "evidence in " + where.name.String(), Err: deadline.Mark(ctx, err)}}}, true
	}
	pending.query = claims.Query{
		Key: pending.Key, Repository: where.name, Scope: pending.registry.Scope(),
		MaxAge: authority.MaxAge, Fallback: at.isFallback, Bypass: s.bypass,
	}
	pending.query.Incomplete, pending.query.Partial = s.answers.isIncomplete(pending.key) // nothing is known at the first repository
	answer, old, ok := s.Claims.Lookup(pending.query)
	if ok && old {
		s.answers.markOld(pending.key)
	}
	return pending, answer, ok
}

// cached returns cached facts about a digest. It does not wait for keys of an authority
// that were never looked up.
func (s *search) cached(ctx context.Context, pinned image.Pinned, key claimQuery, q policy.Question) (policy.Answer, bool) {
	if !s.Claims.IsHashed(q.Authority) {
		return policy.Answer{}, false
	}
	authority, hash, err := s.authority(ctx, q.Authority)
	if err != nil || authority.MaxAge < 0 {
		return policy.Answer{}, false
	}
	answer, old, ok := s.Claims.Facts(s.claimKey(pinned, hash, q))
	if ok {
		s.hit(claims.LayerFacts)
	}
	if old {
		s.answers.markOld(key)
	}
	return answer, ok
}

func (s *search) authority(ctx context.Context, a *verify.Authority) (verify.Authority, string, error) {
	resolved, err := s.prover.Resolve(ctx, *a)
	if err != nil {
		return verify.Authority{}, "", err
	}
	hash, err := s.Claims.Hash(a, resolved)
	return resolved, hash, err
}

func (s *search) claimKey(pinned image.Pinned, hash string, q policy.Question) claims.Key {
	key := claims.Key{
		Digest: pinned.Digest(), Authority: hash, Generation: s.generation,
		Role: q.Role, Predicate: q.Predicate, Artifact: q.Artifact, Sources: sourcesKey(q.Sources),
	}
	inOwn := func(source attest.Source) bool { return source.Repository.IsZero() }
	switch {
	case q.Role == attest.Signature:
	case len(q.Sources) == 0:
		key.Of = s.statements
	case slices.ContainsFunc(q.Sources, inOwn): // a prefix of tags alone
		key.Of = s.own.name.String()
	}
	return key
}

// askReplicas answers as many queries as possible by claims of other replicas, and returns
// the rest.
func (s *search) askReplicas(
	ctx context.Context, missing []*pendingQuery, ask func(context.Context, []claims.Query) []claims.Adopted,
) []*pendingQuery {
	if len(missing) == 0 {
		return nil
	}
	adopted := ask(ctx, queriesOf(missing))
	if adopted == nil {
		return missing
	}
	var rest []*pendingQuery
	for i, pending := range missing {
		if !adopted[i].OK {
			rest = append(rest, pending)
			continue
		}
		if adopted[i].Old {
			s.answers.markOld(pending.key)
		}
		s.answers.set(pending.key, adopted[i].Answer)
	}
	return rest
}

func queriesOf(pending []*pendingQuery) []claims.Query {
	queries := make([]claims.Query, len(pending))
	for i, p := range pending {
		queries[i] = p.query
	}
	return queries
}

// find searches for evidence in each group of sources at once.
func (s *search) find(ctx context.Context, pinned image.Pinned, missing []*pendingQuery) {
	open := map[string][]*pendingQuery{}
	var order []string
	for _, pending := range missing {
		if open[pending.key.sources] == nil {
			order = append(order, pending.key.sources)
		}
		open[pending.key.sources] = append(open[pending.key.sources], pending)
	}
	var group errgroup.Group
	for _, sources := range order {
		group.Go(func() error {
			return panics.Catch(func() { s.findIn(ctx, pinned, open[sources]) })
		})
	}
	if err := group.Wait(); err != nil {
		for _, pending := range missing {
			s.add(pending.at, pending.key, policy.Answer{Gaps: pending.unsearched(err)})
		}
	}
}

// unsearched returns the gaps of a query whose repositories were not searched to the end: none of
// their statements is known.
func (p *pendingQuery) unsearched(err error) []error {
	repositories := []image.Repository{p.query.Repository}
	if len(p.Sources) > 0 {
		repositories = nil
	}
	for _, source := range p.Sources {
		named := cmp.Or(source.Repository, p.query.Repository)
		if !slices.Contains(repositories, named) {
			repositories = append(repositories, named)
		}
	}
	gaps := make([]error, len(repositories))
	for i, repository := range repositories {
		gaps[i] = attest.Gap{Repository: repository, Where: repository.String(), Err: err}
	}
	return gaps
}

// findIn answers queries about one digest and one group of sources.
func (s *search) findIn(ctx context.Context, pinned image.Pinned, group []*pendingQuery) {
	registry, repository := group[0].registry, group[0].query.Repository
	answers, err := s.Claims.Search(ctx, queriesOf(group), claims.Apart(registry, repository), func(ctx context.Context) []policy.Answer {
		queries := make([]evidence.Query, len(group))
		for i, pending := range group {
			queries[i] = pending.Query
		}
		searching, discovered := s.Begin(ctx, PhaseDiscover)
		found := evidence.Find(searching, registry, pinned, repository, queries)
		discovered()
		ctx, verified := s.Begin(ctx, PhaseProve)
		defer verified()
		return evidence.Verify(ctx, s.prover, found, queries)
	})
	for i, pending := range group {
		if err != nil {
			s.add(pending.at, pending.key, policy.Answer{Gaps: pending.unsearched(err)})
			continue
		}
		s.add(pending.at, pending.key, answers[i])
	}
}

// findOrStale searches for evidence, and uses stale facts where the registry does not answer.
func (s *search) findOrStale(ctx context.Context, missing []*pendingQuery, find func(context.Context, []*pendingQuery)) {
	known := s.stale(missing)
	if len(known) == 0 {
		find(ctx, missing)
		return
	}
	rest := slices.DeleteFunc(slices.Clone(missing), func(pending *pendingQuery) bool {
		_, isKnown := known[pending]
		return isKnown && s.Claims.IsSilent(pending.query.Location())
	})
	if len(rest) > 0 {
		brief, done := inBrief(ctx)
		find(brief, rest)
		done()
	}
	for pending, before := range known {
		if slices.Contains(rest, pending) {
			if !s.answers.isUnresponsive(pending.key) {
				continue
			}
			s.Claims.NoteSilence(pending.query.Location())
		}
		s.answers.set(pending.key, before.Answer)
		s.answers.markOld(pending.key)
		s.answers.markStale(pending.key, before.At)
	}
}

// stale returns the stale facts of queries that are not too old.
func (s *search) stale(missing []*pendingQuery) map[*pendingQuery]claims.Entry {
	if s.window == 0 || s.bypass {
		return nil
	}
	known := map[*pendingQuery]claims.Entry{}
	for _, pending := range missing {
		if before, ok := s.Claims.Stale(pending.query, s.window); ok {
			known[pending] = before
		}
	}
	return known
}
