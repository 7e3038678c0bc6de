package attest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
)

// viaReferrers is the Origin.Via of evidence from a list of referrers.
const viaReferrers = "referrers"

// referrer is a manifest in a list, of the image or of an artifact.
type referrer struct {
	place      int
	repository image.Repository
	subject    image.Digest
	listed     image.Descriptor
	interest   interest
	of         *artifact // the signed artifact; nil for the image itself
	room       int64     // bytes reserved for its manifest

	descriptor image.Descriptor
	manifest   manifest
	fetchErr   error // the manifest could not be fetched
	err        error // the manifest cannot be parsed

	// For a referrer that is itself a document, possibly signed by notation:
	asksSigners bool
	signers     []image.Descriptor
	signersErr  error
}

// artifact is a document about the image, with a notation signature of its manifest.
type artifact struct {
	target       image.Descriptor
	artifactType string
	origin       Origin
	layer        image.Descriptor
	content      []byte // nil if it could not be fetched
}

func (r *referrer) origin() Origin {
	return Origin{Repository: r.repository, Via: viaReferrers, Manifest: r.listed.Digest}
}

// open fetches the manifests of referrers, and concurrently the signatures of those that are
// listed as wanted artifacts.
func (s *search) open(ctx context.Context, referrers []*referrer) {
	var tasks []func()
	for _, r := range s.reserve(referrers) {
		tasks = append(tasks, func() { r.fetch(ctx, s) })
		if s.asked.artifact(r.listed.ArtifactType) {
			tasks = append(tasks, func() { r.findSigners(ctx, s.fetcher) })
		}
	}
	together(len(tasks), func(i int) { tasks[i]() })

	// With an unspecific type in the list, the manifest shows the artifact only now.
	var late []*referrer
	for _, r := range referrers {
		if !r.asksSigners && r.usable() && s.asked.artifact(r.manifest.artifactType()) {
			late = append(late, r)
		}
	}
	together(len(late), func(i int) { late[i].findSigners(ctx, s.fetcher) })
}

// reserve returns the referrers with manifests that fit into MaxManifests by their listed sizes,
// those of specific types first, then small ones. The others are not requested.
func (s *search) reserve(referrers []*referrer) []*referrer {
	ordered := slices.Clone(referrers)
	slices.SortStableFunc(ordered, func(a, b *referrer) int {
		return cmp.Or(
			cmp.Compare(a.interest.rank/rankUnknown, b.interest.rank/rankUnknown),
			cmp.Compare(a.listed.Size, b.listed.Size),
			strings.Compare(a.listed.Digest.String(), b.listed.Digest.String()))
	})
	return slices.DeleteFunc(ordered, func(r *referrer) bool {
		r.room = r.listed.Size
		if r.room <= 0 {
			r.room = unlistedManifest
		}
		if s.reserved+r.room <= MaxManifests {
			s.reserved += r.room
			return false
		}
		r.fetchErr = overBound("bytes of referrers' manifests", "MaxManifests", MaxManifests)
		return true
	})
}

func (r *referrer) usable() bool { return r.fetchErr == nil && r.err == nil }

func (r *referrer) fetch(ctx context.Context, s *search) {
	var body []byte
	r.descriptor, body, r.fetchErr = s.fetcher.Manifest(ctx, r.repository, r.listed.Digest.String())
	if image.IsByContent(r.fetchErr) {
		r.fetchErr, r.err = nil, r.fetchErr // one push adds it: no gap
	}
	if r.fetchErr != nil || r.err != nil {
		return
	}
	if int64(len(body)) > r.room {
		r.err = errSize // exceeds its reservation
		return
	}
	if r.descriptor.Digest.IsZero() {
		r.descriptor.Digest = r.listed.Digest
	}
	r.manifest, r.err = parseManifest(r.descriptor, body)
	if r.err == nil {
		r.err = r.manifest.about(r.subject)
	}
}

func (r *referrer) findSigners(ctx context.Context, fetcher Fetcher) {
	r.asksSigners = true
	r.signers, r.signersErr = fetcher.Referrers(ctx, r.repository, r.listed.Digest, []string{ArtifactTypeNotation})
}

// artifacts returns the signatures of the wanted artifacts among referrers.
func (s *search) artifacts(referrers []*referrer) []*referrer {
	var signatures []*referrer
	for _, r := range referrers {
		if !r.usable() || !s.asked.artifact(r.manifest.artifactType()) {
			continue
		}
		where := r.origin().String()
		layer, err := r.manifest.only()
		if err != nil {
			s.found.malformed(where, fmt.Errorf("artifact: %w", err))
			continue
		}
		if r.signersErr != nil && image.KindOf(r.signersErr) != image.NotFound {
			s.found.gap(r.repository, "signatures of "+where, r.signersErr)
		}
		signatures = append(signatures, s.signersOf(r, layer)...)
	}
	return signatures
}

func (s *search) signersOf(r *referrer, layer image.Descriptor) []*referrer {
	where := r.origin().String()
	of := &artifact{target: r.descriptor, artifactType: r.manifest.artifactType(), origin: r.origin(), layer: layer}
	var signatures []*referrer
	for _, d := range notationSignatures(r.signers) {
		if len(signatures) == MaxOpenedReferrers {
			s.found.gap(r.repository, "signatures of "+where, overBound("signatures", "MaxOpenedReferrers", MaxOpenedReferrers))
			break
		}
		signatures = append(signatures, &referrer{place: r.place, repository: r.repository, subject: r.listed.Digest, listed: d, of: of})
	}
	if len(signatures) == 0 && (r.signersErr == nil || image.KindOf(r.signersErr) == image.NotFound) {
		s.found.Unsigned = append(s.found.Unsigned, Evidence{Format: Notation, Role: Attestation, PredicateType: of.artifactType, Origin: of.origin})
	}
	return signatures
}

// notationSignatures returns the entries of a list that may be notation signatures, each digest
// once: those of the specific type first, so that a bound cuts the same ones in any listed order.
func notationSignatures(list []image.Descriptor) []image.Descriptor {
	var specific, unspecific []image.Descriptor
	for _, d := range list {
		switch {
		case d.Digest.IsZero():
		case d.ArtifactType == ArtifactTypeNotation:
			specific = append(specific, d)
		case saysNothing(d.ArtifactType):
			unspecific = append(unspecific, d)
		}
	}
	byDigest := func(a, b image.Descriptor) int { return strings.Compare(a.Digest.String(), b.Digest.String()) }
	slices.SortFunc(specific, byDigest)
	slices.SortFunc(unspecific, byDigest)
	seen := map[image.Digest]bool{}
	return slices.DeleteFunc(append(specific, unspecific...), func(d image.Descriptor) bool {
		again := seen[d.Digest]
		seen[d.Digest] = true
		return again
	})
}
