package gate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/evaluate"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// work is everything that one reference costs: it is resolved once and each
// question about it is answered once, however many containers and policies ask.
type work struct {
	gate    *Gate
	prover  Prover
	session Session
	scope   string // of the credentials
	ref     image.Ref

	generation string // of the prover

	way     *way     // the mirror plan of the reference; nil for none
	home    place    // the image's own repository
	place   *place   // the repository that prove searches now
	later   []*place // where it looks next
	unasked int      // places beyond the bound
	asking  *asking  // the targets to request in parallel; nil for none

	mirrorHash string       // of the snapshot's mirrors
	source     image.Digest // the source tag's digest, where it is only reported

	checks   []*policy.Check
	begun    atomic.Bool
	finished bool // set by the journey: the other fields may be read

	pinned   image.Pinned
	own      []policy.Decision // of the checks, by the digest that was named
	err      error             // why there is no digest
	byLast   bool              // the digest comes from the tag's stale entry
	partial  bool              // answered by the cache alone, incompletely or not yet judged
	data     policy.ImageData  // if a check requires it
	dataErr  error
	duration time.Duration

	children family            // of an index, where a policy asks for platforms
	parent   family            // the index that lists the named digest
	upward   []policy.Decision // of the checks, by that index; none where it was not asked

	mu      sync.Mutex
	others  []Session // of places elsewhere
	answers map[question]policy.Answer
	old     []question // answered from old cache entries
	anew    bool       // the cache is bypassed
	stale   time.Time  // verification time of the oldest stale fact in use
}

// question is a policy.Question about one digest, in comparable form.
type question struct {
	digest    image.Digest
	authority *verify.Authority
	role      attest.Role
	predicate string
	artifact  bool
	sources   string
}

func questionKey(digest image.Digest, q policy.Question) question {
	return question{
		digest: digest, authority: q.Authority, role: q.Role, predicate: q.Predicate,
		artifact: q.Artifact, sources: sourcesKey(q.Sources),
	}
}

func sourcesKey(sources []attest.Source) string {
	if len(sources) == 0 {
		return ""
	}
	var b strings.Builder
	for _, s := range sources {
		b.WriteString(s.Repository.String() + "\x00" + s.TagPrefix + "\x01")
	}
	return b.String()
}

// run resolves the reference, answers all questions of its checks, and judges each
// by the digest that was named.
func (w *work) run(ctx context.Context) {
	if w.asking != nil {
		w.asking.Begin(ctx)
	}
	compared := w.compareSource(ctx)
	defer compared()
	w.pinned, w.err = w.resolveOrLast(ctx)
	if w.err != nil {
		return
	}
	if w.asking != nil && w.asking.chooses {
		w.asking.BeginChoice(ctx, w.pinned.Digest())
	}
	fetched := w.fetchData(ctx)
	defer fetched() // whatever the result of the verification
	w.prove(ctx, w.pinned, w.questions())
	fetched()
	w.judge(ctx)
	w.renew(ctx)
	w.widen(ctx)
	w.lookElsewhere(ctx)
	w.keepLast()
}

// unfinished returns the reason why an unfinished work has no result.
func (w *work) unfinished() error {
	if !w.begun.Load() {
		return policy.ErrCrowdedOut
	}
	return errUnfinished
}

// questions returns the claim queries of all checks.
func (w *work) questions() []policy.Question {
	var questions []policy.Question
	for _, check := range w.checks {
		questions = append(questions, check.Questions()...)
	}
	return questions
}

func (w *work) claimKey(pinned image.Pinned, hash string, q policy.Question) claims.Key {
	return claims.Key{
		Digest: pinned.Digest(), Authority: hash, Generation: w.generation,
		Role: q.Role, Predicate: q.Predicate, Artifact: q.Artifact, Sources: sourcesKey(q.Sources),
	}
}

// judge asks each check about the digest that was named.
func (w *work) judge(ctx context.Context) {
	_, decided := w.gate.options.begin(ctx, PhaseDecide)
	defer decided()
	if ctx.Err() != nil {
		w.late(ctx)
	}
	w.own = make([]policy.Decision, len(w.checks))
	for i, check := range w.checks {
		w.own[i] = w.ask(ctx, check, w.pinned)
	}
}

// renew repeats the lookups where an old cache entry would deny.
func (w *work) renew(ctx context.Context) {
	if len(w.old) == 0 {
		return
	}
	var again []policy.Question
	for i, check := range w.checks {
		if !check.NeedsProof() || w.own[i].Result != policy.Fail {
			continue
		}
		for _, q := range check.Questions() {
			if i := slices.Index(w.old, questionKey(w.pinned.Digest(), q)); i >= 0 {
				w.forget(w.old[i : i+1])
				w.old = slices.Delete(w.old, i, i+1)
				again = append(again, q)
			}
		}
	}
	if len(again) > 0 {
		w.anew = true
		w.prove(ctx, w.pinned, again)
		w.judge(ctx)
	}
}

// forget drops answers, to look them up again.
func (w *work) forget(keys []question) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.answers, func(key question, _ policy.Answer) bool { return slices.Contains(keys, key) })
}

func (w *work) resolve(ctx context.Context) (image.Pinned, error) {
	if digest := w.ref.Digest(); !digest.IsZero() {
		return w.ref.Pin(image.Descriptor{Digest: digest})
	}
	if !w.countsTarget() {
		return w.resolveTag(ctx, w.ref)
	}
	return w.resolveAtTarget(ctx)
}

// resolveTag returns the digest that a tag of the image's repository resolves to.
func (w *work) resolveTag(ctx context.Context, ref image.Ref) (image.Pinned, error) {
	return w.gate.memory.claims.Tags().Resolve(ctx, w.scope, apart(w.session, ref.Repository()), ref, w.measured(w.session.Resolve))
}

// measured notifies the observer of the phase in which a tag is resolved.
func (w *work) measured(resolve func(context.Context, image.Ref) (image.Pinned, error)) func(context.Context, image.Ref) (image.Pinned, error) {
	return func(ctx context.Context, ref image.Ref) (image.Pinned, error) {
		ctx, end := w.gate.options.begin(ctx, PhaseResolve)
		defer end()
		return resolve(ctx, ref)
	}
}

// answersFor returns the answers about one digest.
func (w *work) answersFor(digest image.Digest) policy.Answers {
	return func(q policy.Question) policy.Answer {
		w.mu.Lock()
		defer w.mu.Unlock()
		answer, ok := w.answers[questionKey(digest, q)]
		if !ok {
			answer.Gaps = []error{errors.New("the question was never asked; this is a defect")}
		}
		return answer
	}
}

// prove answers the queries about one digest: from the cache, then from the shared store
// and other replicas, else by one search in each evidence repository and one verification
// for each authority.
func (w *work) prove(ctx context.Context, pinned image.Pinned, questions []policy.Question) {
	var missing []*inquiry
	var asked map[question]bool
	if w.place.isLater {
		asked = map[question]bool{}
	}
	for _, q := range questions {
		key := questionKey(pinned.Digest(), q)
		switch {
		case asked[key], !w.place.isLater && w.known(key):
			continue
		case w.place.isLater:
			asked[key] = true
		}
		in, answer, done := w.inquire(ctx, pinned, q, key)
		w.add(w.place, key, answer)
		if !done {
			missing = append(missing, in)
		}
	}
	if len(missing) > 0 {
		known := w.gate.memory.claims
		missing = w.askReplicas(ctx, missing, known.AskStore)
		missing = w.askReplicas(ctx, missing, known.AskPeers)
		w.seekOrLast(ctx, pinned, missing)
	}
}

// seek searches for evidence in each group of places at once.
func (w *work) seek(ctx context.Context, pinned image.Pinned, missing []*inquiry) {
	open := map[string][]*inquiry{}
	var order []string
	for _, in := range missing {
		if open[in.query.Sources] == nil {
			order = append(order, in.query.Sources)
		}
		open[in.query.Sources] = append(open[in.query.Sources], in)
	}
	var group errgroup.Group
	for _, sources := range order {
		group.Go(func() error {
			return panics.Catch(func() { w.investigate(ctx, pinned, open[sources]) })
		})
	}
	if err := group.Wait(); err != nil {
		for _, in := range missing {
			w.add(in.place, in.key, policy.Answer{Gaps: []error{err}})
		}
	}
}

// investigate answers inquiries about one digest and one group of places.
func (w *work) investigate(ctx context.Context, pinned image.Pinned, inquiries []*inquiry) {
	session, repository := inquiries[0].session, inquiries[0].query.Repository
	answers := w.gate.memory.claims.Search(ctx, queriesOf(inquiries), apart(session, repository), func(ctx context.Context) []policy.Answer {
		queries := make([]evaluate.Query, len(inquiries))
		for i, in := range inquiries {
			queries[i] = in.Query
		}
		searching, discovered := w.gate.options.begin(ctx, PhaseDiscover)
		found := evaluate.Find(searching, session, pinned, repository, queries)
		discovered()
		ctx, proved := w.gate.options.begin(ctx, PhaseProve)
		defer proved()
		return evaluate.Verify(ctx, w.prover, found, queries)
	})
	for i, in := range inquiries {
		w.add(in.place, in.key, answers[i])
	}
}

func (w *work) known(key question) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.answers[key]
	return ok
}

// markOld notes that an answer is only good to allow by.
func (w *work) markOld(key question) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.old, key) {
		w.old = append(w.old, key)
	}
}

func (w *work) record(key question, answer policy.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[key] = answer
}

// add records the answer of an evidence repository: the first one's, or an addition to it.
func (w *work) add(from *place, key question, answer policy.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if from.isLater {
		before := w.answers[key]
		answer = claims.Merge(before, answer, from.repository)
	}
	w.answers[key] = answer
}

// inquiry is a claim query with a resolved authority and no cached answer.
type inquiry struct {
	evaluate.Query
	key     question
	query   claims.Query
	place   *place
	session Session // for the place
}

// inquire resolves the authority of a query and consults the cache.
func (w *work) inquire(ctx context.Context, pinned image.Pinned, q policy.Question, key question) (*inquiry, policy.Answer, bool) {
	authority, hash, err := w.authority(ctx, q.Authority)
	if err != nil {
		return nil, policy.Answer{Gaps: []error{err}}, true // it names the authority
	}
	in := &inquiry{Query: evaluate.Query{Question: q, Resolved: authority, Key: w.claimKey(pinned, hash, q)}, key: key, place: w.place}
	where := w.place
	if len(q.Sources) > 0 { // the policy's own word; elsewhere, the workload's Secrets do not count
		where = &w.home
	}
	in.session, err = where.ask(ctx)
	if err != nil {
		return nil, policy.Answer{Gaps: []error{deadline.Mark(ctx, err)}}, true
	}
	in.query = claims.Query{
		Key: in.Key, Repository: where.repository, Scope: in.session.Scope(),
		MaxAge: authority.MaxAge, Fallback: w.place.isLater, Bypass: w.anew,
	}
	answer, old, ok := w.gate.memory.claims.Lookup(in.query)
	if ok && old {
		w.markOld(key)
	}
	return in, answer, ok
}

func (w *work) authority(ctx context.Context, a *verify.Authority) (verify.Authority, string, error) {
	resolved, err := w.prover.Resolve(ctx, *a)
	if err != nil {
		return verify.Authority{}, "", err
	}
	hash, err := w.gate.memory.claims.Hash(a, resolved)
	return resolved, hash, err
}
