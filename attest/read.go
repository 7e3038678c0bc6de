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

// read fetches the papers together, each blob once, and makes evidence of them,
// in the order of places, then manifests, then layers.
func (s *search) read(ctx context.Context) {
	slices.SortStableFunc(s.papers, func(a, b *paper) int {
		if a.isShared != b.isShared { // signatures need what they are over
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
	read := map[blobKey]*paper{}
	for _, p := range blobs {
		read[p.key()] = p
	}
	for _, p := range s.papers {
		if got, ok := read[p.key()]; ok { // else it is past a bound, which is a gap
			p.body, p.err = got.body, got.err
			s.file(p)
		}
	}
	s.finish()
}

// blobKey names bytes at a place, so that the same are fetched once.
type blobKey struct {
	repository image.Repository
	digest     image.Digest
	size       int64
}

func (p *paper) key() blobKey {
	return blobKey{p.origin.Repository, p.layer.Digest, p.layer.Size}
}

// ration returns the papers to fetch, at most MaxDocuments: those at cosign's
// tags, then the first layer of every referrer, then the second ones, so that a
// referrer of many layers does not crowd out the others. Within one rank small
// ones come first. What is past the bound is a gap.
func (s *search) ration() []*paper {
	var blobs []*paper
	seen := map[blobKey]bool{}
	for _, p := range s.papers {
		if !seen[p.key()] {
			seen[p.key()] = true
			blobs = append(blobs, p)
		}
	}
	slices.SortStableFunc(blobs, func(a, b *paper) int { return cmp.Or(cmp.Compare(a.rank(), b.rank()), bySize(a, b)) })
	if len(blobs) > MaxDocuments {
		s.gap(blobs[MaxDocuments].where(), overBound("documents of one image", "MaxDocuments", MaxDocuments))
		blobs = blobs[:MaxDocuments]
	}
	return blobs
}

// rank orders papers by how many others their manifest can put before them.
func (p *paper) rank() int {
	if p.origin.Via != viaReferrers {
		return -1
	}
	return p.index
}

// bySize puts first what claims to be small: a claim that is too small is found
// out at once, and one that is too large delays only itself.
func bySize(a, b *paper) int {
	return cmp.Or(
		cmp.Compare(a.layer.Size, b.layer.Size),
		strings.Compare(a.layer.Digest.String(), b.layer.Digest.String()))
}

// fetch reads blobs within MaxTotal, small ones first, and returns those that were
// asked for. A claimed size is only a reservation: the share of what failed is
// given back, and what did not fit is tried again with it.
func (s *search) fetch(ctx context.Context, blobs []*paper) []*paper {
	slices.SortStableFunc(blobs, bySize)
	var done []*paper
	var received int64
	for len(blobs) > 0 {
		n, reserved := 0, received
		for n < len(blobs) && reserved+blobs[n].layer.Size <= MaxTotal {
			reserved += blobs[n].layer.Size
			n++
		}
		if n == 0 {
			s.gap(blobs[0].where(), overBound("bytes of documents of one image", "MaxTotal", MaxTotal))
			return done
		}
		s.together(n, func(i int) { blobs[i].fetch(ctx, s.fetcher) })
		for _, p := range blobs[:n] {
			received += int64(len(p.body))
		}
		done, blobs = append(done, blobs[:n]...), blobs[n:]
	}
	return done
}

// errSize: the bytes have the right digest, so they are what the manifest means,
// and still the manifest lies about them.
var errSize = errors.New("its size is not the one that its descriptor says")

// fetch reads the blob. More bytes than the descriptor says contradict it, and
// that is known only of who wrote the manifest: no bound of ours was reached.
func (p *paper) fetch(ctx context.Context, fetcher Fetcher) {
	p.body, p.err = fetcher.Blob(ctx, p.origin.Repository, p.layer, p.layer.Size)
	if isKind(p.err, image.Bound) || p.err == nil && int64(len(p.body)) != p.layer.Size {
		p.body, p.err = nil, errSize
	}
}

// file puts a paper where it belongs, now that it was read.
func (s *search) file(p *paper) {
	switch {
	case errors.Is(p.err, errSize), isKind(p.err, image.Corrupt):
		// The descriptor was written by whoever pushed: that the bytes are not what
		// it says is the evidence's fault.
		s.malformed(p.where(), p.err)
	case p.err != nil:
		s.failed(p.where(), p.err)
	case p.isShared:
		s.share(p)
	case p.of != nil && p.of.content == nil: // told where the content was read
	default:
		e, err := p.evidence()
		if err != nil {
			s.malformed(p.where(), err)
			return
		}
		s.offer(e)
	}
}

// share hands the content of an artifact to its signatures.
func (s *search) share(p *paper) {
	if err := checkJSON(p.body); err != nil {
		s.malformed(p.where(), fmt.Errorf("the artifact's layer is no JSON document: %w", err))
		return
	}
	p.of.content = p.body
}

// evidence makes evidence of what was read, and says what it offers itself as.
func (p *paper) evidence() (Evidence, error) {
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

// offer keeps evidence that is asked for.
func (s *search) offer(e Evidence) {
	if e.Target.Digest.IsZero() && !s.asked.claim(e.Role, e.PredicateType) {
		s.unasked(Evidence{Format: e.Format, Role: e.Role, PredicateType: e.PredicateType, Origin: e.Origin})
		return
	}
	s.found.Evidence = append(s.found.Evidence, e)
}

func (s *search) unasked(e Evidence) { s.found.Unasked = append(s.found.Unasked, e) }

// finish drops what was found twice, and sorts what is for people.
func (s *search) finish() {
	seen := map[string]bool{}
	s.found.Evidence = slices.DeleteFunc(s.found.Evidence, func(e Evidence) bool {
		id := e.ID()
		twice := seen[id]
		seen[id] = true
		return twice
	})
	byWhere := func(a, b Gap) int { return strings.Compare(a.Where, b.Where) }
	slices.SortStableFunc(s.found.Gaps, byWhere)
	slices.SortStableFunc(s.found.Malformed, byWhere)
	for _, list := range []*[]Evidence{&s.found.Unasked, &s.found.Unsigned} {
		slices.SortStableFunc(*list, func(a, b Evidence) int {
			return cmp.Or(
				strings.Compare(a.Origin.String(), b.Origin.String()),
				strings.Compare(a.PredicateType, b.PredicateType))
		})
		*list = (*list)[:min(len(*list), maxUnasked)]
	}
}
