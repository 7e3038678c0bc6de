package imagevalidating

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

var _ policy.Locating = (*rule)(nil)

// Locate evaluates spec.images on the subject, and returns the locations of the remaining values.
// A value that a filter excludes is no image.
func (r *rule) Locate(ctx context.Context, s *policy.Subject) ([]policy.Extractor, error) {
	all := r.Extractors(s)
	if len(r.program.extractors) == 0 || s.Bare || s.Object.IsZero() || r.skips(s) != "" {
		return all, nil
	}
	if r.match != nil {
		if matched, err := r.match.Matches(s); err == nil && !matched {
			return all, nil
		}
	}
	found, err := r.located(ctx, s)
	if err != nil {
		return nil, err
	}
	if !s.OldObject.IsZero() {
		r.markFresh(ctx, s, found)
	}
	if spec, ok := podSpec(s.Group, s.Kind); ok {
		return append(standardPlaces(spec), found...), nil
	}
	return found, nil
}

// markFresh marks the values that the expressions did not extract from the object before the
// update. Otherwise an unverified value from an earlier version could become an image. If the
// expressions cannot be evaluated on the old object, all values are marked.
func (r *rule) markFresh(ctx context.Context, s *policy.Subject, found []policy.Extractor) {
	before := *s
	before.Object, before.OldObject, before.Operation = s.OldObject, policy.Content{}, "CREATE"
	former, err := r.located(ctx, &before)
	for i := range found {
		found[i].Fresh = err != nil || !slices.ContainsFunc(former, func(e policy.Extractor) bool { return e.Path == found[i].Path })
	}
}

// located returns the locations of the images that the expressions name, except for those of a
// pod specification. A text that occurs more often than it is named has no certain location.
func (r *rule) located(ctx context.Context, s *policy.Subject) ([]policy.Extractor, error) {
	spec, _ := podSpec(s.Group, s.Kind)
	activation := r.program.scope.NewActivation(r.inputs(s))
	content := s.Object.Map()
	var found []policy.Extractor
	for n := range r.program.extractors {
		e := &r.program.extractors[n]
		stands := e.stands(content, spec, r.template)
		named, err := e.counts(ctx, activation)
		if err != nil {
			return nil, err
		}
		for _, text := range slices.Sorted(maps.Keys(named)) {
			pointers := stands.pointers[text]
			ambiguous := len(pointers) > named[text]
			if len(pointers) == 0 && text != "" {
				// The expression names it by a form of which the place is not known, so that it
				// is verified and not pinned.
				anywhere := standing{pointers: map[string][]string{}, only: text, spec: spec}
				anywhere.search(content, "")
				pointers, ambiguous = anywhere.pointers[text], true
			}
			if ambiguous {
				pointers = pointers[:min(1, len(pointers))]
			}
			for _, pointer := range pointers {
				found = join(found, policy.Extractor{Name: e.name, Path: pointer, Ambiguous: ambiguous})
			}
		}
	}
	return found, nil
}

// join adds a place; one that is certain once is certain.
func join(found []policy.Extractor, one policy.Extractor) []policy.Extractor {
	at := slices.IndexFunc(found, func(e policy.Extractor) bool { return e.Path == one.Path })
	if at < 0 {
		return append(found, one)
	}
	found[at].Ambiguous = found[at].Ambiguous && one.Ambiguous
	return found
}

// counts returns how often the expression names each text.
func (e *extractor) counts(ctx context.Context, activation *cel.Activation) (map[string]int, error) {
	texts, err := e.texts(ctx, activation)
	if err != nil {
		return nil, err
	}
	named := make(map[string]int, len(texts))
	for _, text := range texts {
		named[text]++
	}
	return named, nil
}

// standing are the pointers of each text, in the order of the object.
type standing struct {
	pointers map[string][]string
	// only is the text that search searches for, outside of the standard places below spec.
	only, spec string
}

// search searches all of a value for a text.
func (s *standing) search(value any, at string) {
	switch value := value.(type) {
	case string:
		if value == s.only && !isStandard(policy.Extractor{Path: pattern(at)}, s.spec) {
			s.pointers[value] = append(s.pointers[value], at)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			s.search(value[name], at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
		}
	case []any:
		for i, element := range value {
			s.search(element, at+"/"+strconv.Itoa(i))
		}
	}
}

// pattern writes a pointer with a star for each number.
func pattern(pointer string) string {
	steps := strings.Split(pointer, "/")
	for i, step := range steps {
		if _, err := strconv.Atoi(step); err == nil {
			steps[i] = "*"
		}
	}
	return strings.Join(steps, "/")
}

// stands returns the texts at the extractor's places, except for those of a pod specification.
func (e *extractor) stands(content map[string]any, spec string, t kyvernocel.Template) standing {
	s := standing{pointers: map[string][]string{}}
	for _, place := range e.places {
		place.Path = t.Pointer(place.Path)
		if !isStandard(place, spec) {
			s.follow(content, strings.Split(place.Path, "/")[1:], "")
		}
	}
	return s
}

// follow walks the places of a path. A path that leads elsewhere has no texts: the expression,
// which reads the same path, names none there either.
func (s *standing) follow(value any, path []string, at string) {
	if len(path) == 0 {
		if text, ok := value.(string); ok && !slices.Contains(s.pointers[text], at) {
			s.pointers[text] = append(s.pointers[text], at)
		}
		return
	}
	step, rest := path[0], path[1:]
	switch value := value.(type) {
	case map[string]any:
		if step != "*" {
			s.follow(value[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)], rest, at+"/"+step)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			s.follow(value[name], rest, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
		}
	case []any:
		for i, element := range value {
			if step == "*" || step == strconv.Itoa(i) {
				s.follow(element, rest, at+"/"+strconv.Itoa(i))
			}
		}
	}
}
