package pattern

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// node is a part of a pattern.
type node interface {
	match(r *run, value any) verdict
}

func (s filled) match(r *run, value any) verdict { return r.filled[s].match(r, value) }

// anchor is the modifier around the name of a key.
type anchor byte

const (
	noAnchor    anchor = 0
	conditional anchor = '('
	global      anchor = '<'
	equality    anchor = '='
	negation    anchor = 'X'
	existence   anchor = '^'
	addition    anchor = '+'
)

func (a anchor) write(name string) string {
	switch a {
	case noAnchor:
		return name
	case conditional:
		return "(" + name + ")"
	}
	return string(rune(a)) + "(" + name + ")"
}

// parseAnchor reads a key; one without an anchor is its own name.
func parseAnchor(key string) (anchor, string) {
	s := strings.TrimSpace(key)
	if !strings.HasSuffix(s, ")") {
		return noAnchor, key
	}
	if s[0] == '(' {
		return conditional, s[1 : len(s)-1]
	}
	if len(s) > 2 && s[1] == '(' && strings.IndexByte("+<=X^", s[0]) >= 0 {
		return anchor(s[0]), s[2 : len(s)-1]
	}
	return noAnchor, key
}

// entry is a key of an object.
type entry struct {
	anchor anchor
	key    string
	source string // with its anchor
	wild   bool   // the key matches by wildcard
	nested bool
	node   node
}

// object is judged in Kyverno's order: conditions; the other anchors; fields,
// those with anchors inside first and the last of them foremost.
type object struct {
	conditions, anchors, fields []entry
}

func newObject(entries []entry) *object {
	o := &object{}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.source, b.source) })
	var first, rest []entry
	for _, e := range entries {
		switch {
		case e.anchor == conditional:
			o.conditions = append(o.conditions, e)
		case e.anchor == equality || e.anchor == negation || e.anchor == existence:
			o.anchors = append(o.anchors, e)
		case e.anchor == global || e.nested:
			first = append(first, e)
		default:
			rest = append(rest, e)
		}
	}
	slices.Reverse(first)
	o.fields = append(first, rest...)
	return o
}

func (o *object) match(r *run, value any) verdict {
	members, ok := value.(map[string]any)
	if !ok {
		return fail("an object", value)
	}
	if err := r.budget.Spend(1 + len(o.conditions) + len(o.anchors) + len(o.fields)); err != nil {
		return breaks(err)
	}
	applied := len(o.conditions) > 0
	var part, skip verdict
	for i := range o.conditions {
		switch v := o.conditions[i].condition(r, members); v.kind {
		case held:
		case partly:
			part = v
		default:
			return v
		}
	}
	for i := range o.anchors {
		switch v := o.anchors[i].anchored(r, members); v.kind {
		case held:
			applied = true
		case partly:
			applied, part = true, v
		case left:
			skip = v
		default:
			return v
		}
	}
	if applied && skip.kind == left {
		part, skip = skip.partly(), verdict{}
	}
	for i := range o.fields {
		switch v := o.fields[i].field(r, members); v.kind {
		case held:
		case partly:
			part = v
		case left:
			skip = v
		case skippedAll:
			if skip.kind == left { // which has skipped the object before, in Kyverno
				v = v.enclosed()
			}
			return v
		default:
			return v
		}
	}
	if skip.kind == left {
		return skip
	}
	return part
}

// condition judges a conditional anchor: for a missing key it does not hold. Of several keys that
// a wildcard matches, one is enough.
func (e *entry) condition(r *run, members map[string]any) verdict {
	return e.any(r, members, skipped)
}

func (e *entry) any(r *run, members map[string]any, otherwise kind) verdict {
	var v, doubtful verdict
	if !e.wild {
		v = e.conditionAt(r, members, e.key)
	} else {
		for _, key := range e.keys(members) {
			v = e.conditionAt(r, members, key)
			if v.kind.holds() || v.kind == broken {
				break
			}
			if v.doubt() != nil {
				doubtful = v
			}
		}
	}
	if v.kind == failed && v.doubt() == nil && doubtful.doubt() != nil {
		v = doubtful
	}
	if doubt := v.doubt(); doubt != nil {
		// A condition that does not hold disables the rule, so that one in doubt does not.
		v.kind, v.why.err = broken, doubt
	}
	if !v.kind.holds() && v.kind != broken {
		v.kind, v.why.anchor = otherwise, e.source
	}
	return v
}

func (e *entry) conditionAt(r *run, members map[string]any, key string) verdict {
	value, ok := members[key]
	if !ok {
		return fail("a value", nil).missing(true).under(key)
	}
	return r.condition(e.node, value).under(key)
}

// keys are the object's keys that match an entry, or the entry's own if there is none. They are
// sorted, so that a path is the same every time.
func (e *entry) keys(members map[string]any) []string {
	var found []string
	for key := range members {
		if wildcard.Match(e.key, key) {
			found = append(found, key)
		}
	}
	if len(found) == 0 {
		return []string{e.key}
	}
	slices.Sort(found)
	return found
}

// all judges each of the keys that a wildcard matches.
func (e *entry) all(r *run, members map[string]any, judge func(key string) verdict) verdict {
	var skip verdict
	keys := e.keys(members)
	for i, key := range keys {
		v := judge(key)
		r.strict = r.strict || v.kind == failed && len(keys) > 1
		if r.lax && v.kind == held {
			return v
		}
		if r.lax && v.kind == failed && i < len(keys)-1 {
			continue
		}
		switch v.kind {
		case held:
		case partly:
			if skip.kind == held {
				skip = v
			}
		case left:
			skip = v
		default:
			return v
		}
	}
	return skip
}

func (e *entry) anchored(r *run, members map[string]any) verdict {
	if e.wild {
		return e.all(r, members, func(key string) verdict { return e.anchoredAt(r, members, key) })
	}
	return e.anchoredAt(r, members, e.key)
}

func (e *entry) anchoredAt(r *run, members map[string]any, key string) verdict {
	value, ok := members[key]
	switch {
	case !ok: // as in Kyverno, also under an existence anchor
		return verdict{}
	case e.anchor == negation:
		return fail("nothing", value).under(key)
	case e.anchor == existence:
		return e.exists(r, value).under(key)
	}
	return e.node.match(r, value).under(key).enclosed()
}

// exists requires, for each element of the pattern, one of the list. An element of which a part is
// skipped is none, as in Kyverno.
func (e *entry) exists(r *run, value any) verdict {
	elements, ok := value.([]any)
	if !ok {
		return fail("a list", value)
	}
	for _, item := range e.node.(*list).items {
		found := false
		for _, element := range elements {
			v := item.match(r, element)
			if v.kind == broken {
				return v
			}
			found = v.kind == held
			if found {
				break
			}
		}
		if !found {
			return fail("a list with an element like the pattern", value)
		}
	}
	return verdict{}
}

func (e *entry) field(r *run, members map[string]any) verdict {
	switch {
	case e.anchor == global:
		return e.global(r, members)
	case e.wild:
		return e.all(r, members, func(key string) verdict { return e.fieldAt(r, members, key) })
	}
	return e.fieldAt(r, members, e.key)
}

func (e *entry) fieldAt(r *run, members map[string]any, key string) verdict {
	value, ok := members[key]
	if isStar(r, e.node) {
		if value == nil {
			return fail("a value of "+key, nil).missing(!ok)
		}
		return verdict{}
	}
	return e.node.match(r, value).missing(!ok).under(key)
}

// global judges a global anchor, which holds where the key is not there.
func (e *entry) global(r *run, members map[string]any) verdict {
	if _, ok := members[e.key]; !ok && (!e.wild || !e.stands(members)) {
		return verdict{}
	}
	return e.any(r, members, skippedAll)
}

// stands reports whether a wildcard matches any key.
func (e *entry) stands(members map[string]any) bool {
	for key := range members {
		if wildcard.Match(e.key, key) {
			return true
		}
	}
	return false
}
