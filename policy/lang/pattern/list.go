package pattern

import (
	"errors"
	"fmt"
	"strconv"
)

// list is a list of patterns: of objects or of values, each of which every
// element of the object's list must match; or of lists, compared one by one.
type list struct{ items []node }

type sort byte

const (
	unknown sort = iota // empty, or known only with a request
	ofValues
	ofObjects
	ofLists
)

// sort returns the type of the list's elements; without a run it does not read slots.
func (l *list) sort(r *run) (sort, error) {
	is := unknown
	for _, item := range l.items {
		this := ofValues
		if slot, ok := item.(filled); ok {
			if r == nil {
				continue
			}
			item = r.filled[slot]
		}
		switch item.(type) {
		case *object:
			this = ofObjects
		case *list:
			this = ofLists
		}
		if is != unknown && is != this {
			return is, errors.New("a pattern's list is of objects, of lists or of other values: split it up")
		}
		is = this
	}
	return is, nil
}

func (l *list) match(r *run, value any) verdict {
	elements, ok := value.([]any)
	if !ok {
		return fail("a list", value)
	}
	if len(l.items) == 0 {
		return fail("no list at all, for the pattern's list is empty", value)
	}
	switch sort, err := l.sort(r); {
	case err != nil:
		return breaks(err)
	case sort == ofObjects:
		return l.objects(r, elements)
	case sort == ofLists:
		return l.lists(r, elements)
	}
	for i, item := range l.counted(r) {
		if v := item.match(r, value); v.kind != held {
			r.strict = r.strict || i > 0
			return v
		}
	}
	return verdict{}
}

func (l *list) counted(r *run) []node {
	if r.lax {
		return l.items[:1]
	}
	return l.items
}

// objects skips the elements with conditions that do not hold, and the whole list if that is true
// of all of them. If items skip all elements and others do not, the list holds in part.
func (l *list) objects(r *run, elements []any) verdict {
	var all tally
	for number, item := range l.counted(r) {
		var t tally
		for i, element := range elements {
			v := item.match(r, element)
			if v.kind != held {
				v = v.under(strconv.Itoa(i))
			}
			if !t.add(v) {
				r.strict = r.strict || number > 0
				return v
			}
		}
		all.add(t.verdict())
	}
	switch {
	case all.part.kind == partly:
		return all.part
	case all.applied && all.skip.kind != held:
		return all.skip.partly()
	}
	return all.verdict().enclosed()
}

// lists compares as many elements as the pattern has.
func (l *list) lists(r *run, elements []any) verdict {
	if len(elements) < len(l.items) {
		return fail(fmt.Sprintf("a list of at least %d", len(l.items)), elements)
	}
	var t tally
	for i, item := range l.items {
		if v := item.match(r, elements[i]).under(strconv.Itoa(i)); !t.add(v) {
			return v
		}
	}
	return t.verdict().enclosed()
}

// tally is of the elements of a list, or of the items of its pattern.
type tally struct {
	applied    bool
	part, skip verdict
}

// add reports whether to go on.
func (t *tally) add(v verdict) bool {
	switch v.kind {
	case failed, broken:
		return false
	case held:
		t.applied = true
	case partly:
		t.part = v
	default:
		// A global anchor counts as one only if it skips all elements.
		if t.skip.kind == held || v.kind != skippedAll {
			t.skip = v
		}
	}
	return true
}

func (t *tally) verdict() verdict {
	switch {
	case t.applied:
		return verdict{}
	case t.part.kind == partly:
		return t.part
	}
	return t.skip
}
