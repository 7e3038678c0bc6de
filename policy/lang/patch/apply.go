package patch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/internal/integer"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/jsonvalue"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/mergekey"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// merging is one application of a Merge.
type merging struct {
	data   variable.Context
	values []any
	left   *Budget
}

// target is where a part is merged: a value of the object, or nothing.
type target struct {
	value any
	is    bool // there is a value, which may be null
	field mergekey.Field
}

// outcome is the result for a location.
type outcome byte

const (
	kept outcome = iota
	written
	removed
)

func (r *merging) text(t text) string {
	if t.slot < 0 {
		return t.is
	}
	return jmespath.Text(r.values[t.slot])
}

// merge merges a part into a place. The result counts if the outcome is written.
func (r *merging) merge(p *part, s target, depth int) (any, outcome, error) {
	if depth > jsonvalue.MaxDepth {
		return nil, kept, fail("", "nesting %w of %d", jsonvalue.ErrTooLarge, jsonvalue.MaxDepth)
	}
	if p.fixed && !p.null && s.value == nil {
		if err := r.left.Spend(p.size); err != nil {
			return nil, kept, &Error{Err: err}
		}
		return p.constant, written, nil
	}
	switch p.kind {
	case objectPart:
		return r.object(p, s, depth)
	case listPart:
		return r.list(p, s, depth)
	}
	switch {
	case p.current != nil:
		value, err := r.current(p.current, s)
		if err != nil {
			return nil, kept, &Error{Err: err}
		}
		return r.raw(value, s, depth)
	case p.slot >= 0:
		return r.raw(r.values[p.slot], s, depth)
	}
	return r.raw(p.constant, s, depth)
}

// raw merges a value that has no anchors and no directives.
func (r *merging) raw(value any, s target, depth int) (any, outcome, error) {
	switch v := value.(type) {
	case nil:
		if s.is {
			return nil, removed, nil
		}
		return nil, kept, nil
	case map[string]any:
		return r.rawObject(v, s, depth)
	case []any:
		return r.rawList(v, s, depth)
	}
	switch s.value.(type) {
	case map[string]any, []any:
		return nil, kept, mismatch(s.value, value)
	case string:
		value = jmespath.Text(value)
	}
	if err := integer.Exact(value); err != nil {
		return nil, kept, &Error{Err: err}
	}
	if s.value == value {
		return nil, kept, nil
	}
	if err := r.left.Charge(value, depth); err != nil {
		return nil, kept, &Error{Err: err}
	}
	return value, written, nil
}

func mismatch(found, patch any) error {
	return fail("", "%s cannot be merged into %s", jsonvalue.KindOf(patch), jsonvalue.KindOf(found))
}

func (r *merging) rawObject(members map[string]any, s target, depth int) (any, outcome, error) {
	p := &part{kind: objectPart, slot: -1, members: make([]member, 0, len(members))}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		p.members = append(p.members, member{name: text{is: key, slot: -1}, part: rawPart(members[key])})
	}
	return r.object(p, s, depth)
}

func rawPart(value any) *part {
	return &part{kind: leafPart, constant: value, slot: -1, plain: true}
}

func (r *merging) rawList(items []any, s target, depth int) (any, outcome, error) {
	p := &part{kind: listPart, slot: -1, elements: make([]*part, len(items))}
	for i, item := range items {
		p.elements[i] = rawPart(item)
	}
	return r.list(p, s, depth)
}

// object merges member by member.
func (r *merging) object(p *part, s target, depth int) (any, outcome, error) {
	members, ok := s.value.(map[string]any)
	if !ok && s.value != nil {
		return nil, kept, mismatch(s.value, map[string]any{})
	}
	if err := r.decide(p.conditions, members); err != nil {
		return nil, kept, err
	}
	switch p.directive {
	case "delete":
		return r.delete(p, members, s, depth)
	case "replace":
		members = nil
	}
	result, changed, err := r.members(p, members, s.field.Shape, depth)
	switch {
	case err != nil:
		return nil, kept, err
	case p.directive == "replace" && jsonvalue.Equal(s.value, orEmpty(result)):
		return nil, kept, nil
	case changed || p.directive == "replace" || s.value == nil && len(p.members) == 0:
		return orEmpty(result), written, nil
	}
	return nil, kept, nil
}

// delete removes an object for which the conditions further in hold, too.
func (r *merging) delete(p *part, members map[string]any, s target, depth int) (any, outcome, error) {
	if p.anchored {
		if _, _, err := r.members(p, members, s.field.Shape, depth); err != nil {
			return nil, kept, err
		}
	}
	if s.is {
		return nil, removed, nil
	}
	return nil, kept, nil
}

func orEmpty(members map[string]any) map[string]any {
	if members == nil {
		return map[string]any{}
	}
	return members
}

// members merges the members of an object into a copy, made when the first one
// changes.
func (r *merging) members(p *part, members map[string]any, shape mergekey.Shape, depth int) (map[string]any, bool, error) {
	result, changed := members, false
	for i := range p.members {
		m := &p.members[i]
		name := r.text(m.name)
		value, is := result[name]
		if m.absent && is {
			continue
		}
		merged, what, err := r.merge(m.part, target{value: value, is: is, field: shape[name]}, depth+1)
		if err != nil {
			return nil, false, below(err, name)
		}
		if what == kept {
			continue
		}
		if !changed {
			result, changed = copyOf(members, len(p.members)), true
		}
		if what == removed {
			delete(result, name)
			continue
		}
		if err := r.left.Spend(len(name)); err != nil {
			return nil, false, &Error{Path: "/" + jsonvalue.Escape(name), Err: err}
		}
		result[name] = merged
	}
	return result, changed, nil
}

func copyOf(members map[string]any, more int) map[string]any {
	if members == nil {
		return make(map[string]any, more)
	}
	return maps.Clone(members)
}

// list merges a list by the rules of its field.
func (r *merging) list(p *part, s target, depth int) (any, outcome, error) {
	items, ok := s.value.([]any)
	if !ok && s.value != nil {
		return nil, kept, mismatch(s.value, []any{})
	}
	if p.directive != "" {
		if err := r.questions(p, items, s, depth); err != nil {
			return nil, kept, err
		}
	}
	switch {
	case p.directive == "delete" && s.is:
		return nil, removed, nil
	case p.directive == "delete":
		return nil, kept, nil
	case p.directive == "replace":
		return r.replace(p, s, depth)
	case len(s.field.Keys) > 0 || p.anchored:
		return r.elements(p, items, s, depth)
	case s.field.Set:
		return r.union(p, items, s, depth)
	}
	return r.replace(p, s, depth)
}

// questions asks the elements with <(x) of a list that is deleted or replaced.
func (r *merging) questions(p *part, items []any, s target, depth int) error {
	m := elementMerge{merging: r, field: s.field, items: items, depth: depth}
	for _, element := range p.elements {
		if !element.global {
			continue
		}
		if err := m.question(element); err != nil {
			return err
		}
	}
	return nil
}

// replace writes the list of the patch; null in it is null.
func (r *merging) replace(p *part, s target, depth int) (any, outcome, error) {
	result := make([]any, 0, len(p.elements))
	for i, element := range p.elements {
		if !element.active {
			value := r.literal(element)
			if err := r.left.Charge(value, depth+1); err != nil {
				return nil, kept, &Error{Path: "/" + strconv.Itoa(i), Err: err}
			}
			result = append(result, value)
			continue
		}
		value, what, err := r.merge(element, target{field: mergekey.Field{Shape: s.field.Shape}}, depth+1)
		if _, other := skipped(err); err != nil && !other {
			return nil, kept, below(err, strconv.Itoa(i))
		}
		if what == written {
			result = append(result, value)
		}
	}
	if jsonvalue.Equal(s.value, result) {
		return nil, kept, nil
	}
	return result, written, nil
}

// literal is a part without anchors and directives, as the policy writes it.
func (r *merging) literal(p *part) any {
	switch {
	case p.fixed:
		return p.constant
	case p.kind == listPart:
		result := make([]any, len(p.elements))
		for i, element := range p.elements {
			result[i] = r.literal(element)
		}
		return result
	case p.kind == objectPart:
		result := make(map[string]any, len(p.members))
		for _, m := range p.members {
			result[r.text(m.name)] = r.literal(m.part)
		}
		return result
	case p.slot >= 0:
		return r.values[p.slot]
	}
	return p.constant
}

// union adds the missing elements of a list of strings, each once.
func (r *merging) union(p *part, items []any, s target, depth int) (any, outcome, error) {
	fresh, _, err := r.replace(p, target{field: s.field}, depth)
	if err != nil {
		return nil, kept, err
	}
	result := []any{}
	for _, item := range slices.Concat(fresh.([]any), items) {
		if !slices.ContainsFunc(result, func(other any) bool { return jsonvalue.Equal(item, other) }) {
			result = append(result, item)
		}
	}
	if jsonvalue.Equal(s.value, result) {
		return nil, kept, nil
	}
	return result, written, nil
}

// elements merges the elements of a list that have keys, or that anchors select.
func (r *merging) elements(p *part, items []any, s target, depth int) (any, outcome, error) {
	m := elementMerge{merging: r, field: s.field, items: items, depth: depth}
	for _, element := range p.elements {
		if err := m.element(element); err != nil {
			return nil, kept, err
		}
	}
	result, changed := m.result()
	switch {
	case changed:
		return result, written, nil
	case s.value == nil && len(p.elements) == 0:
		return []any{}, written, nil
	}
	return nil, kept, nil
}

// skipped returns the failed condition, if err holds one.
func skipped(err error) (*SkippedError, bool) {
	var s *SkippedError
	ok := errors.As(err, &s)
	return s, ok
}

func errNoKey(keys []string) error {
	return fmt.Errorf("an element of the patch has no %q, by which this list is merged: write it, or select elements by an anchor such as (%s)", keys[0], keys[0])
}
