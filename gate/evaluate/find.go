// Package evaluate evaluates one image reference in steps whose inputs and outputs are values: a
// reference is resolved to a digest, evidence about the digest is found in its repositories,
// claims are verified by the evidence, and the checks of policies are decided by the claims.
// Evidence that could not be read or verified is a gap or a rejection in an answer, and never a
// fact.
package evaluate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// Query is a claim query with its authority resolved.
type Query struct {
	policy.Question
	Resolved verify.Authority
	Key      claims.Key
}

// Found is the evidence about a digest in one repository.
type Found struct {
	attest.Found
	// Subject is the digest, with a complete descriptor if a query needs one. Err is the reason
	// why it could not be completed.
	Subject image.Pinned
	Err     error
}

// repository is an evidence repository.
type repository struct {
	name image.Repository
	open func(context.Context, image.Repository) (Registry, error) // nil: registry is set
	// isFallback: facts of an earlier repository may be cached for the same query, and this
	// repository's facts are added to them.
	isFallback bool
	// rest reports that a registry did not answer recently; nil: unknown.
	rest func(registry string) (why string, resting bool)

	once     sync.Once
	registry Registry
	err      error
}

// session returns the registry with the credentials for the repository.
func (r *repository) session(ctx context.Context) (Registry, error) {
	if r.rest != nil {
		if why, resting := r.rest(r.name.Registry()); resting {
			return nil, &image.Error{Kind: image.Unavailable, Op: "look for evidence in", On: r.name.String(), Err: errors.New(why)}
		}
	}
	if r.open != nil {
		r.once.Do(func() { r.registry, r.err = r.open(ctx, r.name) })
	}
	return r.registry, r.err
}

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
	Query
	key      claimQuery
	query    claims.Query
	at       *repository
	registry Registry // for the repository
}

// Find searches a repository for all evidence about subject that the queries can use. The
// queries name the same sources.
func Find(ctx context.Context, registry Registry, subject image.Pinned, repository image.Repository, queries []Query) Found {
	want := wanted(queries)
	out := Found{Subject: subject}
	pinned := subject.At(repository)
	var wg sync.WaitGroup
	if slices.Contains(want.Formats, attest.Notation) && !pinned.Descriptor().IsComplete() {
		wg.Go(func() { // in parallel with the search: costs no round trip of its own
			described, err := registry.Describe(ctx, pinned)
			if err != nil {
				out.Err = err
				return
			}
			out.Subject = described.At(subject.Repository())
		})
	}
	out.Found = attest.Find(ctx, registry, pinned, want)
	wg.Wait()
	return out
}

// wanted joins the kinds of evidence that the queries can use.
func wanted(queries []Query) attest.Want {
	var want attest.Want
	for _, q := range queries {
		for _, format := range formats(q.Resolved) {
			if !slices.Contains(want.Formats, format) {
				want.Formats = append(want.Formats, format)
			}
		}
		switch {
		case q.Role == attest.Signature:
			want.Signatures = true
		case q.Artifact:
			want.Artifacts = appendNew(want.Artifacts, q.Predicate)
		default:
			want.Predicates = appendNew(want.Predicates, q.Predicate)
		}
		want.Sources = q.Sources
	}
	slices.Sort(want.Formats)
	return want
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// formats returns the evidence formats that can verify an authority.
func formats(a verify.Authority) []attest.Format {
	switch {
	case len(a.Formats) > 0:
		return a.Formats
	case a.Notation != nil:
		return []attest.Format{attest.Notation}
	default:
		return []attest.Format{attest.Cosign, attest.Bundle}
	}
}
