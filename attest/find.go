package attest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/image"
)

// Find searches all sources concurrently for the requested evidence of an image. It fetches in
// rounds, independently of the number of signatures: tags and lists of referrers; the referrers'
// manifests; the documents. So a legacy cosign signature takes two rounds, a bundle or a notation
// signature three, a signed artifact four. Evidence of one kind does not wait for the rounds of
// another.
//
// Find cannot fail: Found.Gaps lists the locations that could not be read, also after the end of
// ctx. Equal responses give an equal result in the same order.
func Find(ctx context.Context, fetcher Fetcher, subject image.Pinned, want Want) Found {
	ctx, cancel := context.WithCancel(ctx)
	started := newEarly(fetcher)
	defer started.running.Wait()
	defer cancel() // stops started requests beyond a bound
	s := &search{fetcher: started, early: started, subject: subject.Digest(), asked: newAsked(want)}
	if subject.IsZero() {
		s.found.gap(image.Repository{}, "evidence", errors.New("find evidence: no image was given"))
		return s.found
	}
	places := s.places(subject.Repository())
	together(len(places), func(i int) {
		places[i].look(ctx, s)
		s.ahead(ctx, places[i])
	})
	referrers := s.sift(places)
	s.open(ctx, referrers)
	signatures := s.artifacts(referrers)
	s.open(ctx, signatures)
	s.collect(places)
	s.collectReferrers(referrers)
	s.collectReferrers(signatures)
	s.read(ctx)
	return s.found
}

// search is one run of Find. Only functions under together are concurrent, and each writes only
// its own values.
type search struct {
	fetcher   Fetcher
	early     *early // also the fetcher
	subject   image.Digest
	asked     asked
	documents []*document
	found     Found

	reserved int64 // bytes of referrers' manifests
}

// together runs do for 0 to n-1, several concurrently, and waits for all.
func together(n int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error { do(i); return nil })
	}
	_ = group.Wait() // do has no errors; each failure is recorded where it occurred
}

func (f *Found) gap(in image.Repository, where string, err error) {
	f.Gaps = append(f.Gaps, Gap{Repository: in, Where: where, Err: err})
}

func (f *Found) malformed(where string, err error) {
	f.Malformed = append(f.Malformed, Gap{Where: where, Err: err})
}

// failed records a failure to fetch something that is listed. A response "not found" makes it
// malformed evidence, not a gap: a user with push access can leave such an entry, and must not be
// able to turn "unsigned" into an error.
func (f *Found) failed(in image.Repository, where string, err error) {
	if image.KindOf(err) == image.NotFound {
		f.malformed(where, fmt.Errorf("it is listed and not there: %w", err))
		return
	}
	f.gap(in, where, err)
}

// place is a tag or a list of referrers: a starting point of the search.
type place struct {
	repository image.Repository
	tag        string // empty for referrers
	role       Role   // of the evidence at the tag
	err        error

	descriptor image.Descriptor
	manifest   []byte             // at a tag
	list       []image.Descriptor // of referrers
}

// places lists the places to search, each once, in the order of the sources.
func (s *search) places(own image.Repository) []*place {
	var places []*place
	add := func(p place) {
		same := func(q *place) bool { return q.repository == p.repository && q.tag == p.tag }
		if !slices.ContainsFunc(places, same) {
			places = append(places, &p)
		}
	}
	sources := s.asked.want.Sources
	if len(sources) == 0 {
		sources = []Source{{}}
	}
	for _, source := range sources {
		repository := source.Repository
		if repository.IsZero() {
			repository = own
		}
		for _, p := range s.tags(source.TagPrefix) {
			p.repository = repository
			add(p)
		}
		if s.asked.referrers() {
			add(place{repository: repository})
		}
	}
	return places
}

// tags returns cosign's tags for the subject: [prefix]sha256-<hex>.sig and .att. The name of a
// sha512 digest is too long for a tag, so there is none.
func (s *search) tags(prefix string) []place {
	base := s.subject.Algorithm() + "-" + s.subject.Hex()
	if len(base)+len(".sig") > maxTag {
		return nil
	}
	var tags []place
	if s.asked.signatureTag() {
		tags = append(tags, place{tag: prefix + base + ".sig", role: Signature})
	}
	if s.asked.attestationTag() {
		tags = append(tags, place{tag: prefix + base + ".att", role: Attestation})
	}
	if err := checkPrefix(prefix, len(base)+len(".sig")); err != nil {
		for i := range tags {
			tags[i].err = err
		}
	}
	return tags
}

// checkPrefix refuses a prefix that does not make a tag, which would otherwise appear as "not
// found" and, with a slash, request another resource.
func checkPrefix(prefix string, rest int) error {
	if len(prefix)+rest > maxTag {
		return fmt.Errorf("tag prefix %q: the tag would be longer than %d characters", shorten(prefix), maxTag)
	}
	for i, c := range prefix {
		isWord := c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !isWord && (i == 0 || c != '.' && c != '-') {
			return fmt.Errorf("tag prefix %q: %q cannot be in a tag", prefix, c)
		}
	}
	return nil
}

// where formats the place for messages.
func (p *place) where(subject image.Digest) string {
	if p.tag == "" {
		return "referrers of " + p.repository.String() + "@" + subject.String()
	}
	return p.repository.String() + ":" + p.tag
}

// look requests the tag or the list of referrers.
func (p *place) look(ctx context.Context, s *search) {
	switch {
	case p.err != nil:
	case p.tag == "":
		p.list, p.err = s.fetcher.Referrers(ctx, p.repository, s.subject, s.asked.types())
	default:
		p.descriptor, p.manifest, p.err = s.fetcher.Manifest(ctx, p.repository, p.tag)
	}
}

// sift records the places' errors and selects the referrers to open: for each place and kind at
// most MaxOpenedReferrers, with the most specific types first.
func (s *search) sift(places []*place) []*referrer {
	var chosen []*referrer
	for i, p := range places {
		if p.err != nil && image.KindOf(p.err) != image.NotFound {
			s.found.gap(p.repository, p.where(s.subject), p.err)
		}
		chosen = append(chosen, s.choose(i, p)...)
	}
	return chosen
}

func (s *search) choose(index int, p *place) []*referrer {
	var chosen []*referrer
	seen := map[image.Digest]bool{}
	for _, d := range p.list {
		if seen[d.Digest] || d.Digest.IsZero() {
			continue
		}
		seen[d.Digest] = true
		in := s.asked.listed(d)
		if in.kind != "" {
			chosen = append(chosen, &referrer{place: index, repository: p.repository, subject: s.subject, listed: d, interest: in})
		} else if in.other.Format != "" {
			in.other.Origin = Origin{Repository: p.repository, Via: viaReferrers, Manifest: d.Digest}
			s.found.unasked(in.other)
		}
	}
	slices.SortStableFunc(chosen, func(a, b *referrer) int { // independent of the listed order
		return cmp.Or(
			cmp.Compare(a.interest.rank, b.interest.rank),
			strings.Compare(a.listed.Digest.String(), b.listed.Digest.String()))
	})
	count, full := map[string]int{}, map[string]bool{}
	return slices.DeleteFunc(chosen, func(r *referrer) bool {
		kind := r.interest.kind
		count[kind]++
		if count[kind] > MaxOpenedReferrers && !full[kind] {
			full[kind] = true
			s.found.gap(p.repository, p.where(s.subject), overBound("referrers that are "+kind, "MaxOpenedReferrers", MaxOpenedReferrers))
		}
		return full[kind]
	})
}
