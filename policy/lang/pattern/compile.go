package pattern

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/pattern/comparison"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// place records whether wildcards in keys match keys of the object: only those of labels and
// annotations in metadata do.
type place byte

const (
	elsewhere place = iota
	inMetadata
	inTags
)

// within is the place of the value at key.
func (p place) within(key string) place {
	switch {
	case key == "metadata":
		return inMetadata
	case p == inMetadata && (key == "labels" || key == "annotations"):
		return inTags
	}
	return elsewhere
}

// compiler compiles the pattern, after the checks of depth and references.
type compiler struct {
	engine *jmespath.Engine
	slots  []slot
	nodes  int
}

func compileError(path string, err error) error {
	return &variable.CompileError{Path: path, Err: err}
}

func refuse(path, format string, args ...any) error {
	return compileError(path, fmt.Errorf(format, args...))
}

func pointer(path, key string) string {
	return path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

func checkDepth(value any, path string, depth int) error {
	if depth > maxDepth {
		return refuse(path, "nesting %w of %d", jmespath.ErrTooLarge, maxDepth)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := checkDepth(v[key], pointer(path, key), depth+1); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range v {
			if err := checkDepth(item, path+"/"+strconv.Itoa(i), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *compiler) compile(value any, path string, at place) (node, error) {
	c.nodes++
	if c.nodes > maxNodes {
		return nil, refuse(path, "the number of values in a pattern %w of %d", jmespath.ErrTooLarge, maxNodes)
	}
	switch v := value.(type) {
	case map[string]any:
		return c.object(v, path, at)
	case []any:
		return c.list(v, path)
	case string:
		return c.text(v, path)
	}
	return c.leaf(value, path)
}

func (c *compiler) text(s, path string) (node, error) {
	template, err := variable.CompileAt(c.engine, s, path)
	if err != nil {
		return nil, err
	}
	if !template.Plain() {
		return c.hole(leafSlot{template: template, path: path, whole: template.Outside() == ""}), nil
	}
	plain, err := template.Execute(nil)
	if err != nil {
		return nil, err
	}
	return c.leaf(plain, path)
}

func (c *compiler) leaf(value any, path string) (node, error) {
	l, err := newLeaf(value)
	if err != nil {
		return nil, compileError(path, err)
	}
	return l, nil
}

// hole is a node that each request fills.
func (c *compiler) hole(s slot) node {
	c.slots = append(c.slots, s)
	return filled(len(c.slots) - 1)
}

func (c *compiler) list(items []any, path string) (node, error) {
	l := &list{items: make([]node, len(items))}
	for i, item := range items {
		n, err := c.compile(item, path+"/"+strconv.Itoa(i), elsewhere)
		if err != nil {
			return nil, err
		}
		l.items[i] = n
	}
	if _, err := l.sort(nil); err != nil {
		return nil, compileError(path, err)
	}
	return l, nil
}

// member is an entry with a key that may contain variables. The anchor is in the policy's own
// text: a variable cannot add an anchor to a key.
type member struct {
	key   *variable.Template
	path  string
	entry entry
}

func (c *compiler) object(raw map[string]any, path string, at place) (node, error) {
	s := objectSlot{members: make([]member, 0, len(raw)), tags: at == inTags}
	plain := true
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		m, err := c.member(key, raw[key], pointer(path, key), at)
		if err != nil {
			return nil, err
		}
		s.members = append(s.members, m)
		plain = plain && m.key.Plain()
	}
	if !plain {
		return c.hole(s), nil
	}
	return s.fill(&filler{})
}

func (c *compiler) member(key string, value any, path string, at place) (member, error) {
	kind, name := parseAnchor(key)
	m := member{path: path, entry: entry{anchor: kind, source: key, nested: hasAnchors(value)}}
	var err error
	switch {
	case strings.Contains(key, "$("):
		err = refuse(path, "a reference stands in a value: write the key out")
	case name == "":
		err = refuse(path, "a key without a name")
	case kind == addition:
		err = refuse(path, "the anchor +() adds in a mutation and has no meaning here: write %s or =(%s)", name, name)
	case kind == existence:
		err = checkExistence(value, path)
	case kind == conditional && at == inTags && value == nil:
		err = refuse(path, "labels and annotations are never null, so that the condition %s never holds: want a text", key)
	}
	if err != nil {
		return m, err
	}
	m.key, err = variable.CompileAt(c.engine, name, path)
	if err != nil {
		return m, err
	}
	within := elsewhere
	if m.key.Plain() {
		within = at.within(name)
		if kind != noAnchor && at != inTags && wildcard.Contains(name) {
			return m, refuse(path, "wildcards in keys match in labels and annotations alone, so that no field is %s: write the keys out, or deny them in a foreach", name)
		}
	}
	m.entry.node, err = c.compile(value, path, within)
	return m, err
}

func checkExistence(value any, path string) error {
	items, ok := value.([]any)
	if !ok || len(items) == 0 {
		return refuse(path, "the anchor ^() is for lists: want a list of objects, at least one of them")
	}
	for i, item := range items {
		if _, ok := item.(map[string]any); !ok {
			return refuse(path+"/"+strconv.Itoa(i), "the anchor ^() is for lists of objects: want an object")
		}
	}
	return nil
}

// hasAnchors decides about the order only.
func hasAnchors(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if kind, _ := parseAnchor(key); kind != noAnchor || hasAnchors(item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasAnchors)
	}
	return false
}

// slot is a part of a pattern that has variables where its shape comes from.
type slot interface {
	fill(f *filler) (node, error)
}

// filled is the number of a slot.
type filled int

// filler fills the slots of one request.
type filler struct {
	data  variable.Context
	nodes int
}

// leafSlot is a value.
type leafSlot struct {
	template *variable.Template
	path     string
	whole    bool // nothing is written around the variable
}

func (s leafSlot) fill(f *filler) (node, error) {
	n, err := s.read(f)
	if failed := (*variable.Error)(nil); errors.As(err, &failed) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the value of the variable: %w", s.path, err)
	}
	return n, nil
}

func (s leafSlot) read(f *filler) (node, error) {
	if s.whole {
		value, err := s.template.Execute(f.data)
		if err != nil {
			return nil, err
		}
		return f.read(value, 0)
	}
	pieces, err := s.template.Pieces(f.data)
	if err != nil {
		return nil, err
	}
	var filled strings.Builder
	for _, piece := range pieces {
		if piece.FromVariable {
			piece.Text = comparison.Literal(piece.Text)
		}
		filled.WriteString(piece.Text)
	}
	return newFilled(filled.String())
}

// read creates a pattern from data: its lists and objects are those of a pattern, its keys names
// and its texts plain. The author of data must not write anchors, which could disable a rule, nor
// operators.
func (f *filler) read(value any, depth int) (node, error) {
	f.nodes++
	if f.nodes > maxNodes {
		return nil, fmt.Errorf("the number of values %w of %d", jmespath.ErrTooLarge, maxNodes)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("nesting %w of %d", jmespath.ErrTooLarge, maxDepth)
	}
	switch v := value.(type) {
	case map[string]any:
		o := &object{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n, err := f.read(v[key], depth+1)
			if err != nil {
				return nil, err
			}
			o.fields = append(o.fields, entry{key: key, source: key, node: n})
		}
		return o, nil
	case []any:
		l := &list{items: make([]node, len(v))}
		for i, item := range v {
			n, err := f.read(item, depth+1)
			if err != nil {
				return nil, err
			}
			l.items[i] = n
		}
		return l, nil
	case string:
		return newFilled(comparison.Literal(v))
	}
	return newFilled(value)
}

// name resolves the key. A wildcard matches other keys only if it is in the policy's own text.
func (m member) name(data variable.Context, tags bool) (string, error) {
	pieces, err := m.key.Pieces(data)
	if err != nil {
		return "", err
	}
	var name strings.Builder
	for _, piece := range pieces {
		if tags && piece.FromVariable && wildcard.Contains(piece.Text) {
			return "", refuse(m.path, "a variable brings a wildcard into the key: %s", shorten(piece.Text))
		}
		name.WriteString(piece.Text)
	}
	return name.String(), nil
}

// objectSlot is an object with variables in its keys.
type objectSlot struct {
	members []member
	tags    bool
}

func (s objectSlot) fill(f *filler) (node, error) {
	entries := make([]entry, 0, len(s.members))
	sources := make(map[string]bool, len(s.members))
	for _, m := range s.members {
		e := m.entry
		var err error
		e.key, err = m.name(f.data, s.tags)
		if err != nil {
			return nil, err
		}
		e.wild = s.tags && wildcard.Contains(e.key)
		if !m.key.Plain() {
			e.source = e.anchor.write(e.key)
		}
		if sources[e.source] {
			return nil, refuse(m.path, "the key %q is there twice", shorten(e.source))
		}
		sources[e.source] = true
		entries = append(entries, e)
	}
	return newObject(entries), nil
}
