package mirror

import (
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/image"
)

// maxOrigins bounds the names of one copy. Circular mirrors exceed it, and so may a target that
// hundreds of registries share. Trace and Route then fail, so that no decision is based on a part
// of the names.
const maxOrigins = 256

// Origins returns the sources' names of a reference that lies inside targets, each once, in a
// stable order; none where it does not. A source that is itself a copy is followed. Selectors are
// ignored, so that the policies apply to every image that could have been redirected.
func (s *Set) Origins(ref image.Ref) []Origin {
	origins, _ := s.origins(ref)
	return origins
}

// Trace is Origins for decisions: it returns an error if there are more names than it returns.
func (s *Set) Trace(ref image.Ref) ([]Origin, error) {
	origins, complete := s.origins(ref)
	if !complete {
		return origins, fmt.Errorf(
			"mirrors: %s is a copy of more than %d names, and cannot be judged by all of them: the mirrors lead in a circle, or too many registries share a target",
			ref, maxOrigins)
	}
	return origins, nil
}

// origins also reports whether these are all.
func (s *Set) origins(ref image.Ref) (origins []Origin, complete bool) {
	if s == nil || ref.IsZero() {
		return nil, true
	}
	complete = true
	here := ref.Repository()
	for next := 0; ; next++ {
		s.targets.Visit(here, func(r reverse, named image.Repository) bool {
			from, ok := r.Inverse(named)
			if !ok || from == ref.Repository() {
				return true
			}
			complete = len(origins) < maxOrigins
			if !complete {
				return false
			}
			origins = r.way.join(origins, from, ref)
			return true
		})
		if next >= len(origins) || !complete {
			return origins, complete
		}
		here = origins[next].Ref.Repository()
	}
}

// join adds a source's name with the settings of the way. If two ways lead to one name, the first
// sets the entry, and both add evidence repositories.
func (w *way) join(origins []Origin, from image.Repository, copied image.Ref) []Origin {
	where := w.where(from, from, []image.Repository{copied.Repository()})
	if len(where) == 0 {
		where = []image.Repository{copied.Repository()} // the third repository has no name for this source
	}
	for i := range origins {
		if o := &origins[i]; o.Ref.Repository() == from {
			o.Evidence = unique(append(o.Evidence, where...))
			o.PullSecrets = unique(append(o.PullSecrets, w.entry.pullSecrets...))
			return origins
		}
	}
	return append(origins, Origin{
		Ref: copied.At(from), Mirror: w.entry.name, Evidence: where, PullSecrets: slices.Clone(w.entry.pullSecrets),
	})
}

// IsCopy reports whether copied is a name of ref at one of its targets, by whichever name ref has.
// The caller compares tags and digests.
func (s *Set) IsCopy(copied, ref image.Ref) bool {
	if s == nil || copied.IsZero() || ref.IsZero() || copied.Repository() == ref.Repository() {
		return false
	}
	found := false
	s.targets.Visit(copied.Repository(), func(r reverse, named image.Repository) bool {
		from, ok := r.Inverse(named)
		if ok && (from == ref.Repository() || slices.Contains(ref.Repository().OtherNames(), from)) {
			to, err := r.Forward(from)
			found = err == nil && to == copied.Repository()
		}
		return !found
	})
	return found
}
