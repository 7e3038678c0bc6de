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

// Find looks for the evidence of an image that could matter to want, in every
// source at once. It fetches in rounds, whose number does not grow with the
// number of signatures: tags and lists of referrers; the referrers' manifests;
// the documents. So a legacy cosign signature takes two rounds, a bundle or a
// notation signature three, a signed artifact four. Evidence of one kind does not
// wait for the rounds of another.
//
// What could not be looked at is in Found.Gaps, also when ctx ended; Find itself
// cannot fail. The result is the same, in the same order, for the same answers.
func Find(ctx context.Context, fetcher Fetcher, subject image.Pinned, want Want) Found {
	ctx, cancel := context.WithCancel(ctx)
	started := newEarly(fetcher)
	defer started.running.Wait()
	defer cancel() // what was started and is past a bound
	s := &search{fetcher: started, early: started, subject: subject.Digest(), asked: newAsked(want)}
	if subject.IsZero() {
		s.gap("evidence", errors.New("find evidence: no image was given"))
		return s.found
	}
	places := s.places(subject.Repository())
	s.together(len(places), func(i int) {
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

// search is one run of Find. Only together's functions run beside each other,
// and each writes only what is its own.
type search struct {
	fetcher Fetcher
	early   *early // fetcher, too
	subject image.Digest
	asked   asked
	papers  []*paper
	found   Found

	reserved int64 // bytes of referrers' manifests
}

// together runs do for 0 to n-1, several at once, and waits for all.
func (*search) together(n int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error { do(i); return nil })
	}
	_ = group.Wait() // do has no errors; what failed is kept where it failed
}

func (s *search) gap(where string, err error) {
	s.found.Gaps = append(s.found.Gaps, Gap{Where: where, Err: err})
}

func (s *search) malformed(where string, err error) {
	s.found.Malformed = append(s.found.Malformed, Gap{Where: where, Err: err})
}

// failed files a failure to fetch what is known to exist. The registry's answer
// that it is not there is an answer: whoever may push can leave such an entry,
// and must not be able to turn "unsigned" into "could not look".
func (s *search) failed(where string, err error) {
	if isKind(err, image.NotFound) {
		s.malformed(where, fmt.Errorf("it is listed and not there: %w", err))
		return
	}
	s.gap(where, err)
}

// place is a tag or a list of referrers: where the search begins.
type place struct {
	repository image.Repository
	tag        string // empty for referrers
	role       Role   // of what the tag holds
	err        error

	descriptor image.Descriptor
	manifest   []byte             // at a tag
	list       []image.Descriptor // of referrers
}

// places lists where to look, each once, in the order of the sources.
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

// tags returns cosign's tags for the subject: [prefix]sha256-<hex>.sig and .att.
// The name of a sha512 digest is no valid tag, so nothing can be there.
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

// checkPrefix refuses a prefix that does not make a tag, which would otherwise
// look like "not found" and, with a slash, ask for something else.
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

// where names the place for people.
func (p *place) where(subject image.Digest) string {
	if p.tag == "" {
		return "referrers of " + p.repository.String() + "@" + subject.String()
	}
	return p.repository.String() + ":" + p.tag
}

// look asks what is at the place.
func (p *place) look(ctx context.Context, s *search) {
	switch {
	case p.err != nil:
	case p.tag == "":
		p.list, p.err = s.fetcher.Referrers(ctx, p.repository, s.subject, s.asked.types())
	default:
		p.descriptor, p.manifest, p.err = s.fetcher.Manifest(ctx, p.repository, p.tag)
	}
}

// sift files what the places answered and returns the referrers worth opening,
// for each place and kind at most MaxReferrers, the most telling first.
func (s *search) sift(places []*place) []*referrer {
	var chosen []*referrer
	for i, p := range places {
		if p.err != nil && !isKind(p.err, image.NotFound) {
			s.gap(p.where(s.subject), p.err)
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
			s.unasked(in.other)
		}
	}
	slices.SortStableFunc(chosen, func(a, b *referrer) int { // the same ones, in whatever order they are listed
		return cmp.Or(
			cmp.Compare(a.interest.rank, b.interest.rank),
			strings.Compare(a.listed.Digest.String(), b.listed.Digest.String()))
	})
	count, full := map[string]int{}, map[string]bool{}
	return slices.DeleteFunc(chosen, func(r *referrer) bool {
		kind := r.interest.kind
		count[kind]++
		if count[kind] > MaxReferrers && !full[kind] {
			full[kind] = true
			s.gap(p.where(s.subject), overBound("referrers that are "+kind, "MaxReferrers", MaxReferrers))
		}
		return full[kind]
	})
}
