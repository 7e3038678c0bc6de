package attest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
)

// read fetches the documents together, each blob once, and converts them to evidence, in the
// order of places, then manifests, then layers.
func (s *search) read(ctx context.Context) {
	slices.SortStableFunc(s.documents, func(a, b *document) int {
		if a.isShared != b.isShared { // signatures need the signed content
			if a.isShared {
				return -1
			}
			return 1
		}
		return cmp.Or(
			cmp.Compare(a.place, b.place),
			strings.Compare(a.origin.Manifest.String(), b.origin.Manifest.String()),
			cmp.Compare(a.index, b.index))
	})
	blobs := s.fetch(ctx, s.ration())
	read := map[blobKey]*document{}
	for _, p := range blobs {
		read[p.key()] = p
	}
	for _, p := range s.documents {
		if got, ok := read[p.key()]; ok { // otherwise it exceeds a bound, which is a gap
			p.body, p.err = got.body, got.err
			s.file(p)
		}
	}
	s.found.finish()
}

// blobKey identifies bytes at a place, so that equal ones are fetched once.
type blobKey struct {
	repository image.Repository
	digest     image.Digest
	size       int64
}

func (p *document) key() blobKey {
	return blobKey{p.origin.Repository, p.layer.Digest, p.layer.Size}
}

// ration returns the documents to fetch, at most MaxDocuments: those at cosign's tags, then the
// first layer of every referrer, then the second ones, so that a referrer with many layers does
// not displace the others. Within one rank, small ones come first. The rest are gaps.
func (s *search) ration() []*document {
	var blobs []*document
	seen := map[blobKey]bool{}
	for _, p := range s.documents {
		if !seen[p.key()] {
			seen[p.key()] = true
			blobs = append(blobs, p)
		}
	}
	slices.SortStableFunc(blobs, func(a, b *document) int { return cmp.Or(cmp.Compare(a.rank(), b.rank()), bySize(a, b)) })
	if len(blobs) > MaxDocuments {
		s.found.gap(blobs[MaxDocuments].origin.Repository, blobs[MaxDocuments].where(), overBound("documents of one image", "MaxDocuments", MaxDocuments))
		blobs = blobs[:MaxDocuments]
	}
	return blobs
}

// rank is the document's position within its manifest; cosign's tags come first.
func (p *document) rank() int {
	if p.origin.Via != viaReferrers {
		return -1
	}
	return p.index
}

// bySize orders by the listed size. A size that is too small is detected at once, and one that is
// too large delays only its own document.
func bySize(a, b *document) int {
	return cmp.Or(
		cmp.Compare(a.layer.Size, b.layer.Size),
		strings.Compare(a.layer.Digest.String(), b.layer.Digest.String()))
}

// fetch reads blobs within MaxTotal, small ones first, and returns the requested ones. A listed
// size is only a reservation: it is released after a failure, and documents that did not fit are
// tried again.
func (s *search) fetch(ctx context.Context, blobs []*document) []*document {
	slices.SortStableFunc(blobs, bySize)
	var done []*document
	var received int64
	for len(blobs) > 0 {
		n, reserved := 0, received
		for n < len(blobs) && reserved+blobs[n].layer.Size <= MaxTotal {
			reserved += blobs[n].layer.Size
			n++
		}
		if n == 0 {
			s.found.gap(blobs[0].origin.Repository, blobs[0].where(), overBound("bytes of documents of one image", "MaxTotal", MaxTotal))
			return done
		}
		together(n, func(i int) { blobs[i].fetch(ctx, s.fetcher) })
		for _, p := range blobs[:n] {
			received += int64(len(p.body))
		}
		done, blobs = append(done, blobs[:n]...), blobs[n:]
	}
	return done
}

// errSize: the bytes have the right digest, but not the size in the manifest.
var errSize = errors.New("its size differs from its descriptor's")

// fetch reads the blob. Other bytes than in the descriptor are an error of the manifest, and not an
// exceeded bound.
func (p *document) fetch(ctx context.Context, fetcher Fetcher) {
	p.body, p.err = fetcher.Blob(ctx, p.origin.Repository, p.layer, p.layer.Size)
	if p.err == nil && int64(len(p.body)) != p.layer.Size {
		p.body, p.err = nil, errSize
	}
}

// file records the result of a document after reading.
func (s *search) file(p *document) {
	switch {
	case errors.Is(p.err, errSize), image.IsByContent(p.err):
		// A user with push access wrote the descriptor: it is malformed evidence.
		s.found.malformed(p.where(), p.err)
	case p.err != nil:
		s.found.failed(p.origin.Repository, p.where(), p.err)
	case p.isShared:
		s.share(p)
	case p.of != nil && p.of.content == nil: // reported with the content
	default:
		e, err := p.evidence()
		if err != nil {
			s.found.malformed(p.where(), err)
			return
		}
		s.offer(e)
	}
}

// share passes the content of an artifact to its signatures.
func (s *search) share(p *document) {
	if err := CheckJSON(p.body); err != nil {
		s.found.malformed(p.where(), fmt.Errorf("the artifact's layer is no JSON document: %w", err))
		return
	}
	p.of.content = p.body
}

// evidence converts the content to evidence and determines its role.
func (p *document) evidence() (Evidence, error) {
	e := Evidence{Format: p.format, Role: p.role, MediaType: p.layer.MediaType, Payload: p.body, Origin: p.origin}
	var err error
	switch {
	case p.format == Bundle:
		e.Role, e.PredicateType, err = peekBundle(p.body)
	case p.format == Cosign && p.role == Attestation:
		e.Annotations = p.layer.Annotations
		e.PredicateType, err = peekEnvelope(p.body)
	case p.format == Cosign:
		e.Annotations = p.layer.Annotations
	case p.of != nil:
		e.Role, e.PredicateType = Attestation, p.of.artifactType
		e.Target, e.Content = p.of.target, p.of.content
	}
	return e, err
}

// offer records requested evidence.
func (s *search) offer(e Evidence) {
	if e.Target.Digest.IsZero() && !s.asked.claim(e.Role, e.PredicateType) {
		s.found.unasked(Evidence{Format: e.Format, Role: e.Role, PredicateType: e.PredicateType, Origin: e.Origin})
		return
	}
	s.found.Evidence = append(s.found.Evidence, e)
}

func (f *Found) unasked(e Evidence) { f.Unasked = append(f.Unasked, e) }

// finish removes duplicates, and sorts the lists for messages.
func (f *Found) finish() {
	seen := map[string]bool{}
	f.Evidence = slices.DeleteFunc(f.Evidence, func(e Evidence) bool {
		id := e.ID()
		twice := seen[id]
		seen[id] = true
		return twice
	})
	byWhere := func(a, b Gap) int { return strings.Compare(a.Where, b.Where) }
	slices.SortStableFunc(f.Gaps, byWhere)
	slices.SortStableFunc(f.Malformed, byWhere)
	for _, list := range []*[]Evidence{&f.Unasked, &f.Unsigned} {
		slices.SortStableFunc(*list, func(a, b Evidence) int {
			return cmp.Or(
				strings.Compare(a.Origin.String(), b.Origin.String()),
				strings.Compare(a.PredicateType, b.PredicateType))
		})
		*list = (*list)[:min(len(*list), maxUnasked)]
	}
}
