package mirror

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/image"
)

// Route returns the mirrors of a reference: nil where no source matches, and where the reference
// lies inside a target already. A source matches by each name that the reference's repository has
// (image.Repository.OtherNames). The longest source prefix wins, after the more exact host. A target
// is left out if the image's name there is too long. An error means that the selectors of a matching
// entry could not be evaluated, or that it has no other target.
func (s *Set) Route(ref image.Ref, about Subject) (*Route, error) {
	if s == nil || ref.IsZero() {
		return nil, nil
	}
	if s.isInside(ref.Repository()) {
		_, err := s.Trace(ref)
		return nil, err
	}
	var chosen *way
	var from image.Repository
	var failure error
	s.sources.Visit(ref.Repository(), func(w *way, named image.Repository) bool {
		if !w.entry.pulls.includes(ref) || len(w.targets) == 0 {
			return true
		}
		applies, err := w.entry.selects.match(about)
		switch {
		case err != nil:
			failure = fmt.Errorf("mirrors: %s names %s and cannot be queried: %w", w.entry.name, ref, err)
		case applies:
			chosen, from = w, named
		default:
			return true
		}
		return false
	})
	if failure != nil || chosen == nil {
		return nil, failure
	}
	return chosen.route(ref, from)
}

// isInside reports whether a name is a target's name for some image.
func (s *Set) isInside(copied image.Repository) bool {
	inside := false
	s.targets.Visit(copied, func(r reverse, named image.Repository) bool {
		from, ok := r.Inverse(named)
		inside = ok && from != copied // another form of the source is not a copy
		return !inside
	})
	return inside
}

func (p Pulls) includes(ref image.Ref) bool {
	switch p {
	case ByDigest:
		return !ref.Digest().IsZero()
	case ByTagOnly:
		return ref.Digest().IsZero()
	}
	return true
}

// route maps the reference by the name from that the source has for it.
func (w *way) route(ref image.Ref, from image.Repository) (*Route, error) {
	e := w.entry
	route := &Route{Mirror: e.name, When: e.when, Otherwise: e.otherwise, Resolve: e.resolve, PullSecrets: slices.Clone(e.pullSecrets)}
	var copies []image.Repository
	var errs []error
	for _, t := range w.targets {
		to, err := t.Forward(from)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !slices.Contains(copies, to) {
			copies = append(copies, to)
			route.Candidates = append(route.Candidates, Candidate{Ref: ref.At(to), Fill: t.fill})
		}
	}
	if len(copies) == 0 {
		return nil, fmt.Errorf("mirrors: %s has no target for %s: %w", e.name, ref, errors.Join(errs...))
	}
	route.Evidence = w.where(from, ref.Repository(), copies)
	if len(route.Evidence) == 0 {
		return nil, fmt.Errorf("mirrors: %s has no place for the evidence of %s: its name there would be too long", e.name, ref)
	}
	return route, nil
}

// where returns the repositories of evidence, in order, without duplicates. The source is asked by the
// name written.
func (w *way) where(from, written image.Repository, copies []image.Repository) []image.Repository {
	var found []image.Repository
	for _, e := range w.evidence {
		switch {
		case e.at != nil:
			if at, err := e.at.Forward(from); err == nil {
				found = append(found, at)
			}
		case e.side == Source:
			found = append(found, written)
		default:
			found = append(found, copies...)
		}
	}
	return unique(found)
}

// unique keeps the first of equal values.
func unique[T comparable](values []T) []T {
	var kept []T
	for _, v := range values {
		if !slices.Contains(kept, v) {
			kept = append(kept, v)
		}
	}
	return kept
}
