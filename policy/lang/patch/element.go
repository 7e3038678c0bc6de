package patch

import (
	"errors"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/jsonvalue"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/mergekey"
)

// elementMerge merges the elements of a patch into those of a list. In a list with one
// merge key, the patched elements come first in the result, in the order of the patch.
type elementMerge struct {
	*merging
	field mergekey.Field
	items []any // of the object, not modified
	depth int

	current []any // items as they are now, and after them new elements
	first   []int // those of current that the patch concerns
	gone    []int // those of current that are removed
	changed bool
}

// element merges one element of the patch.
func (m *elementMerge) element(p *part) error {
	if p.global {
		return m.question(p)
	}
	keys, err := m.keysOf(p)
	if err != nil {
		return err
	}
	if keys == nil && !p.anchored {
		if len(m.field.Keys) == 0 {
			return &Error{Err: errors.New("this list has no merge key: elements with anchors and elements without cannot stand side by side in its patch")}
		}
		return &Error{Err: errNoKey(m.field.Keys)}
	}
	found := false
	for i := range m.size() {
		if m.isGone(i) || keys != nil && !m.matches(m.at(i), keys) {
			continue
		}
		found = true
		if err := m.mergeAt(p, i); err != nil {
			return err
		}
		if keys != nil {
			break
		}
	}
	if found || keys == nil {
		return nil
	}
	return m.add(p)
}

func (m *elementMerge) size() int {
	if m.current == nil {
		return len(m.items)
	}
	return len(m.current)
}

func (m *elementMerge) at(i int) any {
	if m.current == nil {
		return m.items[i]
	}
	return m.current[i]
}

func (m *elementMerge) isGone(i int) bool {
	return slices.Contains(m.gone, i)
}

// mergeAt merges an element of the patch into one of the list, if its conditions hold.
func (m *elementMerge) mergeAt(p *part, i int) error {
	value, is := m.at(i).(map[string]any)
	if !is {
		return nil
	}
	merged, what, err := m.merge(p, target{value: value, is: true, field: mergekey.Field{Shape: m.field.Shape}}, m.depth+1)
	if _, other := skipped(err); other {
		return nil
	}
	if err != nil {
		return below(err, strconv.Itoa(i))
	}
	switch what {
	case removed:
		m.gone = append(m.gone, i)
		m.changed = true
		return nil
	case written:
		m.own()
		m.current[i] = merged
	}
	if what == written || p.plain {
		m.concern(i)
	}
	return nil
}

// add appends an element that the list does not have.
func (m *elementMerge) add(p *part) error {
	value, what, err := m.merge(p, target{field: mergekey.Field{Shape: m.field.Shape}}, m.depth+1)
	if _, other := skipped(err); other {
		return nil
	}
	if err != nil {
		return below(err, "-")
	}
	if what == written {
		m.own()
		m.current = append(m.current, value)
		m.concern(len(m.current) - 1)
	}
	return nil
}

// question merges nothing: an element with <(x) only decides whether the patch is
// for this object.
func (m *elementMerge) question(p *part) error {
	var last error
	ask := func(s target, token string) (bool, error) {
		_, _, err := m.merge(p, s, m.depth+1)
		switch s, is := skipped(err); {
		case is && s.global:
			last = below(err, token)
		case is:
		case err != nil:
			return false, below(err, token)
		default:
			return true, nil
		}
		return false, nil
	}
	for i, item := range m.items {
		if passed, err := ask(target{value: item, is: true, field: mergekey.Field{Shape: m.field.Shape}}, strconv.Itoa(i)); passed || err != nil {
			return err
		}
	}
	if len(m.items) == 0 {
		if _, err := ask(target{field: mergekey.Field{Shape: m.field.Shape}}, "-"); err != nil {
			return err
		}
	}
	return last
}

func (m *elementMerge) own() {
	if m.current == nil {
		m.current = make([]any, len(m.items), len(m.items)+1)
		copy(m.current, m.items)
	}
	m.changed = true
}

// concern puts an element first. Where there is not one key, only new elements
// come first.
func (m *elementMerge) concern(i int) {
	if len(m.field.Keys) != 1 && i < len(m.items) {
		return
	}
	if !slices.Contains(m.first, i) {
		m.first = append(m.first, i)
	}
}

// keysOf returns the values of the merge keys of an element, or nil if it does not
// have the first of them.
func (m *elementMerge) keysOf(p *part) ([]any, error) {
	if len(m.field.Keys) == 0 {
		return nil, nil
	}
	value := p.constant
	if p.slot >= 0 {
		value = m.values[p.slot]
	}
	members, isObject := value.(map[string]any)
	if p.kind == leafPart && !isObject {
		return nil, &Error{Err: errors.New("want objects in this list, found " + jsonvalue.KindOf(value))}
	}
	if p.kind == listPart {
		return nil, &Error{Err: errors.New("want objects in this list, found a list")}
	}
	keys := make([]any, len(m.field.Keys))
	for i, key := range m.field.Keys {
		if p.kind == leafPart {
			keys[i] = members[key]
		} else {
			keys[i] = m.keyOf(p, key)
		}
	}
	if keys[0] == nil {
		return nil, nil
	}
	return keys, nil
}

func (m *elementMerge) keyOf(p *part, key string) any {
	for i := range p.members {
		if mm := &p.members[i]; !mm.absent && mm.part.kind == leafPart && m.text(mm.name) == key {
			if mm.part.slot >= 0 {
				return m.values[mm.part.slot]
			}
			return mm.part.constant
		}
	}
	return nil
}

// matches reports whether an element of the list is the one with these keys. All
// but the first may be left out on either side.
func (m *elementMerge) matches(item any, keys []any) bool {
	members, _ := item.(map[string]any)
	for i, key := range m.field.Keys {
		found := members[key]
		if i > 0 && (found == nil || keys[i] == nil) {
			continue
		}
		if found == nil || jmespath.Text(found) != jmespath.Text(keys[i]) {
			return false
		}
	}
	return true
}

// result is the list as the patch leaves it.
func (m *elementMerge) result() ([]any, bool) {
	moved := false
	for i, at := range m.first {
		moved = moved || i != at
	}
	if !m.changed && !moved {
		return nil, false
	}
	result := make([]any, 0, m.size())
	for _, i := range m.first {
		if !m.isGone(i) {
			result = append(result, m.at(i))
		}
	}
	for i := range m.size() {
		if !m.isGone(i) && !slices.Contains(m.first, i) {
			result = append(result, m.at(i))
		}
	}
	return result, true
}
