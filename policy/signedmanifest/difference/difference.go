package difference

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/internal/integer"
	"github.com/quaymaster/quaymaster/policy/signedmanifest"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

const (
	// MaxDifferences is how many differences are reported; more are counted as one.
	MaxDifferences = 5
	// MaxSteps bounds the work on patterns of ignored fields in one comparison: the author of an object
	// chooses the number of its fields. A tenth of a second.
	MaxSteps = 100_000_000
	// maxShown is how much of a value is reported, in bytes.
	maxShown = 60
)

// Terms are the terms of a comparison.
type Terms struct {
	// Ignored are the fields that the policy ignores.
	Ignored Fields
	// Domain is that of the annotations with the evidence.
	Domain signedmanifest.Domain
	// Stored: the API server stores the object already, so that a scheduler may have bound a Pod.
	Stored bool
}

// ErrBound means that a comparison takes more than MaxSteps.
var ErrBound = errors.New("comparing the object with its manifest takes too many steps (MaxSteps): it has too many ignored fields")

// Find returns the differences of an object to its manifest, none if it is what was signed. The
// manifest is taken as it is written, or as an API server stores it. The error is ErrBound.
func (t Terms) Find(manifest workload.Object, object map[string]any) ([]string, error) {
	written := manifest.Content()
	differences, err := t.find(written, written, object)
	if err != nil || len(differences) == 0 {
		return nil, err
	}
	kept, err := t.find(stored.Object(manifest).Content(), written, object)
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	return kept, nil
}

// FindDryRun is Find with the object that an API server would make of the manifest, which has to have
// the manifest's name and namespace.
func (t Terms) FindDryRun(manifest workload.Object, made, object map[string]any) ([]string, error) {
	return t.find(withoutToken(made), manifest.Content(), object)
}

func (t Terms) find(signed, written, object map[string]any) ([]string, error) {
	of := kindOf(object)
	s := &search{terms: t, written: written, root: object, kind: of, defaults: of.defaults()}
	s.members(place{}, signed, object)
	if s.steps > MaxSteps {
		return nil, ErrBound
	}
	if s.more {
		s.found = append(s.found, "and more")
	}
	return s.found, nil
}

// search is one comparison.
type search struct {
	terms Terms
	// written is the manifest as it was written, and root the object.
	written, root map[string]any
	kind          kind
	defaults      []table
	found         []string
	// more: there are more differences than reported. The search ends with the first of them.
	more  bool
	steps int
}

// isOver reports whether the result cannot change.
func (s *search) isOver() bool { return s.more || s.steps > MaxSteps }

// place is a field of both objects.
type place struct {
	path []string
	// general is the path with * for each index of a list.
	general string
	// parent is the object that the field is in, on the object's side.
	parent map[string]any
}

func (p place) member(name string, parent map[string]any) place {
	general := name
	if p.general != "" {
		general = p.general + string(separator) + name
	}
	return place{path: append(slices.Clip(p.path), name), general: general, parent: parent}
}

func (p place) element(i int) place {
	return place{path: append(slices.Clip(p.path), strconv.Itoa(i)), general: p.general + string(separator) + "*", parent: p.parent}
}

// skipped reports whether a field takes no part in the comparison.
func (s *search) skipped(at place) bool {
	return at.isIdentity() || carried(s.terms.Domain, at.path) || s.isIgnored(at.path)
}

func (s *search) isIgnored(path []string) bool {
	if s.isOver() || len(s.terms.Ignored) == 0 {
		return false
	}
	length := 0
	for _, name := range path {
		length += len(name) + 1
	}
	for _, pattern := range s.terms.Ignored {
		s.steps += length * len(pattern)
	}
	return s.steps <= MaxSteps && s.terms.Ignored.ignore(path)
}

// isIdentity: signedmanifest.IsOf has compared the names.
func (p place) isIdentity() bool {
	return len(p.path) == 2 && (p.general == general("metadata.name") || p.general == general("metadata.namespace"))
}

func general(path string) string { return strings.ReplaceAll(path, ".", string(separator)) }

// value compares two values that both exist.
func (s *search) value(at place, signed, found any) {
	switch signed := signed.(type) {
	case map[string]any:
		if found, ok := found.(map[string]any); ok {
			s.members(at, signed, found)
			return
		}
	case []any:
		if found, ok := found.([]any); ok {
			s.list(at, signed, found)
			return
		}
	default:
		if equal(signed, found) {
			return
		}
	}
	if !s.skipped(at) && !s.owned(at, found) {
		s.report(at, "was signed as "+s.show(signed)+" and is "+s.show(found))
	}
}

// equal compares scalars. Integers that a decoder rounds are equal to nothing.
func equal(a, b any) bool {
	switch a := a.(type) {
	case nil, string, bool:
		return a == b
	case float64:
		other, ok := b.(float64)
		return ok && a == other && !integer.Rounded(a)
	}
	return false
}

func (s *search) members(at place, signed, found map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(signed)) {
		if s.isOver() {
			return
		}
		below := at.member(name, found)
		value, there := found[name]
		switch {
		case there:
			s.value(below, signed[name], value)
		case signed[name] != nil: // an API server stores no null
			s.removed(below, signed[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, was := signed[name]; !was && !s.isOver() {
			s.added(at.member(name, found), found[name])
		}
	}
}

func (s *search) list(at place, signed, found []any) {
	if at.general == general("metadata.finalizers") {
		s.finalizers(at, signed, found)
		return
	}
	for i := range max(len(signed), len(found)) {
		if s.isOver() {
			return
		}
		below := at.element(i)
		switch {
		case i >= len(found):
			s.removed(below, signed[i])
		case i >= len(signed):
			s.appended(below, found[i])
		default:
			s.value(below, signed[i], found[i])
		}
	}
}

func (s *search) removed(at place, signed any) {
	if s.isOver() || s.skipped(at) || s.owned(at, nil) {
		return
	}
	if members, ok := signed.(map[string]any); ok && len(members) > 0 {
		for _, name := range slices.Sorted(maps.Keys(members)) {
			s.removed(at.member(name, nil), members[name])
		}
		return
	}
	s.report(at, "was signed and is not there")
}

// added explains a field that was not signed: as a whole, or each of its members.
func (s *search) added(at place, found any) {
	if s.isOver() || s.skipped(at) || s.owned(at, found) || s.isDefault(at, found) {
		return
	}
	switch found := found.(type) {
	case map[string]any:
		if len(found) > 0 {
			for _, name := range slices.Sorted(maps.Keys(found)) {
				s.added(at.member(name, found), found[name])
			}
			return
		}
	case []any:
		if at.general == general("metadata.finalizers") {
			s.finalizers(at, nil, found)
			return
		}
		if s.appends(at) && len(found) > 0 {
			for i, item := range found {
				s.appended(at.element(i), item)
			}
			return
		}
	}
	s.report(at, "was not signed")
}

// appended explains an element that was not signed. The members of an element do not explain it.
func (s *search) appended(at place, found any) {
	if !s.isOver() && !s.skipped(at) && !s.isAppended(at, found) {
		s.report(at, "was not signed")
	}
}

func (s *search) report(at place, what string) {
	if len(s.found) == MaxDifferences {
		s.more = true
		return
	}
	s.found = append(s.found, strings.Join(at.path, ".")+" "+what)
}

// show writes a value for people. Nothing of a Secret is shown.
func (s *search) show(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	if s.kind.is("", "Secret") {
		return "another value"
	}
	text, err := json.Marshal(value)
	if err != nil || len(text) > maxShown {
		return "a long value"
	}
	return string(text)
}
