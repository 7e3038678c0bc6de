package overlay

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// Options describe the object of a pattern.
type Options struct {
	// Object is the name of the object in the expression.
	Object string
	// OneOfSeveral: a conditional anchor that does not hold skips a rule, and is no match for an alternative.
	OneOfSeveral bool
	// Untyped checks the types of objects and lists, which an API server guarantees for its own kinds.
	Untyped bool
}

// Expression writes a pattern, JSON as encoding/json decodes it, as a condition on an object.
func Expression(pattern any, options Options) (string, error) {
	w := writer{conditional: options.OneOfSeveral, within: options.OneOfSeveral, untyped: options.Untyped}
	fields, ok := pattern.(map[string]any)
	if !ok {
		return "", &source.Unsupported{Found: "is no object"}
	}
	made, err := w.object(fields, celtext.Path{Direct: options.Object}, "")
	if err != nil {
		return "", err
	}
	if options.OneOfSeveral {
		return all(made.met()), nil
	}
	return made.guarded(), nil
}

// IsConditional reports whether a pattern has conditional anchors.
func IsConditional(pattern any) bool {
	switch p := pattern.(type) {
	case map[string]any:
		for key, value := range p {
			if kind, _ := anchorOf(key); kind == '(' || kind == '<' || IsConditional(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(p, IsConditional)
	}
	return false
}

// condition holds if all of must does, or one of skip does not.
type condition struct {
	skip []string // conditional anchors that skip the rest up to the next list or =()
	must []string
	// settled: a part that skips was written where it is, so that nothing may stand beside it.
	settled bool
}

// guarded writes the condition, with the anchors that skip.
func (c condition) guarded() string {
	if len(c.skip) == 0 {
		return all(c.must)
	}
	if len(c.must) == 0 {
		return "true"
	}
	return celtext.Join([]string{celtext.Not(all(c.skip)), all(c.must)}, " || ")
}

func all(parts []string) string {
	if len(parts) == 0 {
		return "true"
	}
	return celtext.And(parts)
}

type writer struct {
	untyped bool
	depth   int
	// conditional: the pattern is that of a conditional anchor, or of an existence anchor, which a skipped part does
	// not meet. within: it is below a list or =(), where a part is skipped alone.
	conditional, within bool
}

// met writes the condition where a skipped part counts as one that does not hold.
func (c condition) met() []string { return append(slices.Clone(c.skip), c.must...) }

// object writes a pattern of an object that is there, or of one that is read as an optional value.
func (w *writer) object(fields map[string]any, at celtext.Path, place string) (condition, error) {
	var c condition
	skips := slices.ContainsFunc(slices.Collect(maps.Keys(fields)), func(key string) bool {
		kind, _ := anchorOf(key)
		return kind == '(' || kind == '<'
	})
	absent := at
	stands := skips || !reaches(fields)
	if stands {
		at = at.Sure()
	}
	for _, written := range slices.Sorted(maps.Keys(fields)) {
		here := below(place, written)
		kind, key := anchorOf(written)
		value := fields[written]
		if isWild(key) && isOfTags(place) && !hasVariable(key) {
			if err := w.wild(&c, written, value, at, here); err != nil {
				return c, err
			}
			continue
		}
		if err := plain(key, here); err != nil {
			return c, err
		}
		if kind != 0 {
			if err := w.anchor(&c, kind, value, at.At(key), here); err != nil {
				return c, err
			}
			continue
		}
		one, err := w.field(value, at.At(key), here)
		if err != nil {
			return c, err
		}
		if w.conditional {
			c.must = append(c.must, one.met()...)
			continue
		}
		if one.settled && len(fields) > 1 {
			return c, &source.Unsupported{Path: here, Found: "a conditional anchor below a field with others beside it"}
		}
		c.must, c.settled = append(c.must, one.must...), c.settled || one.settled
	}
	var first []string
	if stands && absent.Optional != "" {
		first = []string{absent.Present}
	}
	if stands && w.untyped && place != "" {
		first = append(first, "type("+at.Direct+") == map")
	}
	if len(c.skip) > 0 && len(first) > 0 && !w.conditional {
		c = condition{must: []string{c.guarded()}, settled: absent.Optional != ""}
	}
	c.must = append(first, c.must...)
	return c, nil
}

// reaches reports whether a pattern of an object requires a field, so that the object must be there, too.
func reaches(fields map[string]any) bool {
	for written, value := range fields {
		if kind, _ := anchorOf(written); kind != 0 {
			continue
		}
		switch v := value.(type) {
		case nil:
		case string:
			if !counts(v) { // a missing value is zero
				return true
			}
		default:
			return true // an object, which must be there
		}
	}
	return false
}

// anchor adds a key with an anchor.
func (w *writer) anchor(c *condition, kind byte, value any, member celtext.Path, here string) error {
	switch kind {
	case 'X':
		c.must = append(c.must, celtext.Not(member.Present))
		return nil
	case '=':
		if b, is := value.(bool); is {
			c.must = append(c.must, member.Or(strconv.FormatBool(b))+" == "+strconv.FormatBool(b))
			return nil
		}
		one, err := w.below(func() (condition, error) { return w.field(value, member.Sure(), here) })
		if err != nil {
			return err
		}
		if w.conditional && len(one.skip) > 0 {
			return &source.Unsupported{Path: here, Found: "a conditional anchor below =() in another"}
		}
		c.must = append(c.must, celtext.Join([]string{celtext.Not(member.Present), one.guarded()}, " || "))
		return nil
	case '(', '<':
		if kind == '<' && w.within {
			return &source.Unsupported{Path: here, Found: "a global anchor within a list or =()"}
		}
		one, err := w.condition(value, member.Sure(), here)
		if err != nil {
			return err
		}
		if kind == '<' { // a missing key is as good as one that matches
			c.skip = append(c.skip, celtext.Join([]string{celtext.Not(member.Present), all(one)}, " || "))
			return nil
		}
		// Of a missing key the condition does not hold, whatever its pattern.
		c.skip = append(append(c.skip, member.Present), one...)
		return nil
	case '^':
		return w.exists(c, value, member, here)
	}
	return &source.Unsupported{Path: here, Found: fmt.Sprintf("the anchor %c()", kind)}
}

// condition writes the pattern of a conditional anchor.
func (w *writer) condition(value any, at celtext.Path, here string) ([]string, error) {
	before := w.conditional
	w.conditional = true
	one, err := w.field(value, at, here)
	w.conditional = before
	return one.met(), err
}

// below writes a part that is skipped alone.
func (w *writer) below(write func() (condition, error)) (condition, error) {
	before := w.within
	w.within = true
	defer func() { w.within = before }()
	return write()
}

// exists adds an existence anchor: for each item one of the elements matches, if the list is there.
func (w *writer) exists(c *condition, value any, member celtext.Path, here string) error {
	items, _ := value.([]any) // the compiler of the policy requires a list of objects
	var parts []string
	for i, item := range items {
		name := elementName(member.Direct, w.depth)
		w.depth++
		one, err := w.below(func() (condition, error) {
			met, err := w.condition(item, celtext.Path{Direct: name}, here+"["+strconv.Itoa(i)+"]")
			return condition{must: met}, err
		})
		w.depth--
		if err != nil {
			return err
		}
		parts = append(parts, member.Direct+".exists("+name+", "+all(one.must)+")")
	}
	if w.untyped {
		parts = append([]string{"type(" + member.Direct + ") == list"}, parts...)
	}
	c.must = append(c.must, celtext.Join([]string{celtext.Not(member.Present), all(parts)}, " || "))
	return nil
}

// wild adds a key of labels or annotations with a wildcard.
func (w *writer) wild(c *condition, written string, value any, at celtext.Path, here string) error {
	kind, pattern := anchorOf(written)
	if at.Optional != "" {
		at = celtext.Path{Direct: at.Or("{}")}
	}
	matches := celtext.Matches(pattern, "key")
	if kind == 'X' {
		c.must = append(c.must, "!"+at.Direct+".exists(key, "+matches+")")
		return nil
	}
	one, err := leaf(value, celtext.Path{Direct: at.Direct + "[key]"}, here)
	if err != nil {
		return err
	}
	every := at.Direct + ".all(key, " + celtext.Join([]string{celtext.Not(matches), one}, " || ") + ")"
	some := at.Direct + ".exists(key, " + matches + ")"
	switch kind {
	case '=':
		c.must = append(c.must, every)
	case 0: // without a key the value is missing
		missing, err := leaf(value, celtext.Path{Direct: "null"}, here)
		if text, is := value.(string); err != nil || !is || strings.ContainsAny(text, "<>!") || missing == "" {
			return &source.Unsupported{Path: here, Found: "a wildcard in a key of a value that may be missing"}
		}
		c.must = append(c.must, some, every)
	default:
		return &source.Unsupported{Path: here, Found: "a wildcard in the key of a condition"}
	}
	return nil
}

func isWild(key string) bool { return strings.ContainsAny(key, "*?") }

// isOfTags reports whether a path is that of labels or annotations, in which keys may have wildcards.
func isOfTags(place string) bool {
	parts := strings.Split(place, ".")
	if len(parts) < 2 {
		return false
	}
	_, last := anchorOf(parts[len(parts)-1])
	_, before := anchorOf(parts[len(parts)-2])
	return before == "metadata" && (last == "labels" || last == "annotations")
}

// field writes the pattern of one value.
func (w *writer) field(pattern any, at celtext.Path, place string) (condition, error) {
	switch p := pattern.(type) {
	case map[string]any:
		return w.object(p, at, place)
	case []any:
		text, err := w.list(p, at, place)
		return condition{must: text}, err
	}
	text, err := leaf(pattern, at, place)
	return condition{must: []string{text}}, err
}

// list writes a pattern of a list, which every element must match.
func (w *writer) list(items []any, at celtext.Path, place string) ([]string, error) {
	if len(items) == 0 {
		return nil, &source.Unsupported{Path: place, Found: "an empty list"}
	}
	name := elementName(at.Direct, w.depth)
	var must []string
	if at.Optional != "" {
		must = append(must, at.Present)
	}
	if w.untyped {
		must = append(must, "type("+at.Direct+") == list")
	}
	w.depth++
	defer func() { w.depth-- }()
	for i, item := range items {
		here := place + "[" + strconv.Itoa(i) + "]"
		if _, nested := item.([]any); nested {
			return nil, &source.Unsupported{Path: here, Found: "a list in a list"}
		}
		one, err := w.below(func() (condition, error) { return w.field(item, celtext.Path{Direct: name}, here) })
		if err != nil {
			return nil, err
		}
		must = append(must, at.Direct+".all("+name+", "+one.guarded()+")")
		if w.conditional && len(one.skip) > 0 {
			// A list of which all elements are skipped does not hold, and an empty one does.
			if len(items) > 1 {
				return nil, &source.Unsupported{Path: here, Found: "conditional anchors in one of several items within another"}
			}
			must = append(must, at.Direct+".size() == 0 || "+at.Direct+".exists("+name+", "+all(one.met())+")")
			if len(one.must) == 0 {
				must = slices.Delete(must, len(must)-2, len(must)-1)
			}
		}
	}
	return must, nil
}

// elementName names an element of a list after it: container of containers.
func elementName(list string, depth int) string {
	name := list[strings.LastIndexAny(list, ".]'")+1:]
	singular, plural := strings.CutSuffix(name, "s")
	if !plural || !celtext.IsField(singular) || strings.HasPrefix(list, singular+".") {
		return "item" + strings.Repeat("s", depth)
	}
	return singular
}

// anchorOf reads a key; zero means that it has no anchor.
func anchorOf(key string) (kind byte, name string) {
	switch {
	case !strings.HasSuffix(key, ")"):
	case key[0] == '(':
		return '(', key[1 : len(key)-1]
	case len(key) > 2 && key[1] == '(' && strings.IndexByte("+<=X^", key[0]) >= 0:
		return key[0], key[2 : len(key)-1]
	}
	return 0, key
}

// plain refuses variables, references and wildcards in a key.
func plain(key, place string) error {
	switch {
	case hasVariable(key):
		return &source.Unsupported{Path: place, Found: "a variable"}
	case isWild(key):
		return &source.Unsupported{Path: place, Found: "a wildcard in a key"}
	}
	return nil
}

func hasVariable(s string) bool { return strings.Contains(s, "{{") || strings.Contains(s, "$(") }

func below(place, key string) string {
	if place == "" {
		return key
	}
	return place + "." + key
}
