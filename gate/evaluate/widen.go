package evaluate

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/gate/content"
	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
)

// widen evaluates other digests than the one that the reference names, where a policy
// selects platforms, or where a child was named and the signature may be on its index.
func (e *Evaluation) widen(ctx context.Context, at *repository) {
	r := &e.result
	if e.selectsPlatforms() {
		if r.children.Pinned.IsZero() { // else an earlier repository was asked about them
			r.children = e.content.reader().Index(ctx, r.Pinned)
		}
		e.searchChildren(ctx, at)
		if at == e.primary {
			e.renewChildren(ctx)
		}
	}
	ref := e.resolver.ref
	if ref.Digest().IsZero() || ref.Tag() == "" || !r.lacksClaims() {
		return
	}
	if r.parent.Pinned.IsZero() {
		r.parent, r.isAtTag = e.resolver.index(ctx, &e.content, r.Pinned.Digest())
	}
	if r.parent.Err != nil || r.parent.Pinned.IsZero() || len(r.parent.Children) == 0 {
		return
	}
	e.search.run(ctx, at, r.parent.Pinned, questionsOf(r.checks))
	r.decideByParent(ctx)
	isDenied := func(i int) bool { return r.Decide(i).Result == policy.Fail }
	if at == e.primary && e.renewAbout(ctx, r.parent.Pinned, isDenied) {
		r.decideByParent(ctx)
	}
}

// renewChildren repeats the lookups about children where old cache entries would deny.
func (e *Evaluation) renewChildren(ctx context.Context) {
	denied := make([]bool, len(e.result.checks))
	for i, check := range e.result.checks {
		denied[i] = check.NeedsProof() && check.Platforms != policy.PlatformIndex && e.result.Decide(i).Result == policy.Fail
	}
	for _, child := range e.result.children.Children {
		e.renewAbout(ctx, e.result.Pinned.Child(child), func(i int) bool { return denied[i] })
	}
}

// decideByParent evaluates the checks by the index that lists the named digest.
func (r *Result) decideByParent(ctx context.Context) {
	r.byParent = make([]policy.Decision, len(r.checks))
	for i, check := range r.checks {
		if check.NeedsProof() && check.Platforms == policy.PlatformIndex && !decide.Contradicted(r.own[i]) {
			r.byParent[i] = r.decideBy(ctx, check, r.parent.Pinned)
			if r.byParent[i].Result == policy.Pass {
				if nearest := r.decideByNearest(ctx, check); nearest.Result != policy.Pass {
					r.byParent[i] = nearest
				}
			}
		}
	}
}

// decideByNearest decides by the platform's own statements, where there are any, else by its index's.
func (r *Result) decideByNearest(ctx context.Context, check *policy.Check) policy.Decision {
	if check.Judge == nil {
		return decide.ByNearest(check, r.answers.about(r.Pinned.Digest()), r.answers.about(r.parent.Pinned.Digest()), r.Pinned.Repository(), r.answers.first)
	}
	return Judge(ctx, check.Judge, []policy.Given{r.nearest(check)}).Decisions[0]
}

// selectsPlatforms reports whether a check requires claims about children of an index.
func (e *Evaluation) selectsPlatforms() bool {
	return slices.ContainsFunc(e.result.checks, func(check *policy.Check) bool {
		return check.Platforms != policy.PlatformIndex && check.NeedsProof()
	})
}

func (e *Evaluation) searchChildren(ctx context.Context, at *repository) {
	var questions []policy.Question
	for _, check := range e.result.checks {
		if check.Platforms != policy.PlatformIndex {
			questions = append(questions, check.Questions()...)
		}
	}
	var group errgroup.Group
	group.SetLimit(e.Parallel)
	for _, child := range e.result.children.Children {
		group.Go(func() error {
			return panics.Catch(func() { e.search.run(ctx, at, e.result.Pinned.Child(child), questions) })
		})
	}
	if err := group.Wait(); err != nil {
		e.result.children.Err = err
	}
}

// searchFallbacks searches the fallbacks while the earlier repositories do not meet a check.
// Their facts are added: a requirement may be met by parts from several repositories.
func (e *Evaluation) searchFallbacks(ctx context.Context) {
	for _, next := range e.fallbacks {
		if !e.result.lacksClaims() || ctx.Err() != nil {
			return
		}
		e.searchFallback(ctx, next)
	}
	if e.unsearched > 0 && e.result.lacksClaims() {
		gap := &image.Error{Kind: image.Bound, Op: "look for evidence about", On: e.resolver.ref.String(),
			Err: fmt.Errorf("%d places, at most %d are looked at", e.unsearched+maxRepositories, maxRepositories)}
		for _, q := range e.anywhere() {
			e.answers.merge(claimQueryOf(e.result.Pinned.Digest(), q), policy.Answer{Gaps: []error{gap}}, image.Repository{})
		}
		e.decide(ctx)
	}
}

// searchFallback searches a repository for missing claims, in a share of the remaining time.
func (e *Evaluation) searchFallback(ctx context.Context, at *repository) {
	ctx, done := inBrief(ctx)
	defer done()
	e.search.run(ctx, at, e.result.Pinned, e.anywhere())
	e.decide(context.WithoutCancel(ctx)) // a deadline here applies to this repository alone
	e.widen(ctx, at)
}

// anywhere returns the queries whose policy does not name an evidence repository itself.
func (e *Evaluation) anywhere() []policy.Question {
	return slices.DeleteFunc(questionsOf(e.result.checks), func(q policy.Question) bool { return len(q.Sources) > 0 })
}

// index resolves the tag of a reference that has a tag and a digest, and returns whether it resolves to
// the named digest, or else the index behind it if that lists the named digest.
func (r *resolver) index(ctx context.Context, c *imageContent, named image.Digest) (listing content.Index, isNamed bool) {
	tagged, err := image.Parse(r.ref.Repository().String() + ":" + r.ref.Tag())
	if err != nil {
		return content.Index{Err: err}, false
	}
	pinned, err := r.tag(ctx, tagged)
	if err != nil || pinned.Digest() == named {
		return content.Index{Err: err}, err == nil
	}
	found := c.reader().Index(ctx, pinned)
	if slices.ContainsFunc(found.Children, func(child image.Descriptor) bool { return child.Digest == named }) {
		return found, false
	}
	return content.Index{Err: found.Err}, false
}
