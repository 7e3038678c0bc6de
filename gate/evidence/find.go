// Package evidence finds the evidence about one digest in one repository, and verifies it for the
// claim queries of policies. Evidence that could not be read or verified is a gap or a rejection in
// an answer, and never a fact.
package evidence

import (
	"context"
	"slices"
	"sync"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// Registry reads evidence with some credentials.
type Registry interface {
	attest.Fetcher
	// Describe adds the manifest's media type and size.
	Describe(ctx context.Context, pinned image.Pinned) (image.Pinned, error)
}

// Query is a claim query with its authority resolved.
type Query struct {
	policy.Question
	Resolved verify.Authority
	Key      claims.Key
}

// counted counts the answered requests of a search as steps of the shared work.
type counted struct{ attest.Fetcher }

func count(ctx context.Context, err error) {
	if err == nil || image.KindOf(err) != image.Unavailable {
		cache.Step(ctx)
	}
}

// Manifest implements attest.Fetcher.
func (c counted) Manifest(ctx context.Context, repository image.Repository, reference string) (image.Descriptor, []byte, error) {
	descriptor, body, err := c.Fetcher.Manifest(ctx, repository, reference)
	count(ctx, err)
	return descriptor, body, err
}

// Blob implements attest.Fetcher.
func (c counted) Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, most int64) ([]byte, error) {
	body, err := c.Fetcher.Blob(ctx, repository, blob, most)
	count(ctx, err)
	return body, err
}

// Referrers implements attest.Fetcher.
func (c counted) Referrers(ctx context.Context, repository image.Repository, digest image.Digest, artifactTypes []string) ([]image.Descriptor, error) {
	list, err := c.Fetcher.Referrers(ctx, repository, digest, artifactTypes)
	count(ctx, err)
	return list, err
}

// Found is the evidence about a digest in one repository.
type Found struct {
	attest.Found
	// Subject is the digest, with a complete descriptor if a query needs one. Err is the reason
	// why it could not be completed.
	Subject image.Pinned
	Err     error
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
	out.Found = attest.Find(ctx, counted{registry}, pinned, want)
	wg.Wait()
	if repository == subject.Repository() && out.isEmpty() {
		out.confirm(ctx, registry)
	}
	return out
}

// isEmpty reports whether nothing at all was found, and nothing was left unread.
func (f *Found) isEmpty() bool {
	return len(f.Evidence)+len(f.Gaps)+len(f.Malformed)+len(f.Unsigned)+len(f.Unasked) == 0
}

// confirm adds a gap if the repository does not have the digest that a reference names: an image that
// is not there is not unsigned. The digest of a tag or of a platform was read there before.
func (f *Found) confirm(ctx context.Context, registry Registry) {
	if f.Subject.Ref().Digest().IsZero() || f.Subject.Descriptor().IsComplete() {
		return
	}
	err := f.Err
	if err == nil {
		_, err = registry.Describe(ctx, f.Subject)
	}
	if image.KindOf(err) == image.NotFound {
		f.Gaps = append(f.Gaps, attest.Gap{Repository: f.Subject.Repository(), Where: "manifest of the image", Err: err, Absent: true})
	}
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
