package patch

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/internal/integer"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/jsonvalue"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/mergekey"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/operation"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/yamltemplate"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// Merge is a compiled patchStrategicMerge. It is immutable and safe for
// concurrent use.
type Merge struct {
	root *part
	// values are the variables of the patch; parts refer to them by index.
	values []*variable.Template
}

// The kinds of a part.
const (
	leafPart = iota
	objectPart
	listPart
)

// part is a part of a patch.
type part struct {
	kind int
	// constant is the part if nothing in it depends on the object or on variables; fixed
	// reports this, and size is its cost.
	constant any
	fixed    bool
	size     int
	slot     int // of a leaf with variables, or -1
	// current is a leaf with {{@}}, which is evaluated where it is merged.
	current *variable.Template

	members    []member
	conditions []condition
	elements   []*part
	directive  string // delete, replace or ""

	// Contents of the part or below it: an anchor; <(x); an anchor or a directive; null.
	anchored, global, active, null bool
	// plain: it writes something without an anchor in front.
	plain bool
}

// member is a member of an object.
type member struct {
	name   text
	absent bool // +(name): only where the object has none
	part   *part
}

// text is a name, with variables or without.
type text struct {
	is   string
	slot int // or -1
}

// CompileMerge reads patchStrategicMerge: an object, with variables in its strings and
// keys. Errors are *variable.CompileError.
func CompileMerge(engine *jmespath.Engine, value any) (*Merge, error) {
	normal, err := jmespath.Normalize(value)
	if err != nil {
		return nil, &variable.CompileError{Err: err}
	}
	members, ok := normal.(map[string]any)
	if !ok {
		return nil, wrong("", "want an object, found %s", jsonvalue.KindOf(normal))
	}
	if _, whole := members[directive]; whole {
		return nil, wrong("/"+directive, "%w", operation.ErrWhole)
	}
	c := mergeCompiler{engine: engine, merge: &Merge{}}
	c.merge.root, err = c.object(members, "", 0)
	if err != nil {
		return nil, err
	}
	return c.merge, nil
}

// directive is the member that selects the operation on an object or a list.
const directive = "$patch"

type mergeCompiler struct {
	engine *jmespath.Engine
	merge  *Merge
}

func (c mergeCompiler) part(value any, at string, depth int) (*part, error) {
	if depth > jsonvalue.MaxDepth {
		return nil, wrong(at, "nesting %w of %d", jsonvalue.ErrTooLarge, jsonvalue.MaxDepth)
	}
	switch v := value.(type) {
	case map[string]any:
		return c.object(v, at, depth)
	case []any:
		return c.list(v, at, depth)
	case string:
		return c.text(v, at)
	}
	return constantPart(value), nil
}

func constantPart(value any) *part {
	return &part{kind: leafPart, constant: value, fixed: integer.Exact(value) == nil, size: jsonvalue.Cost, slot: -1, null: value == nil, plain: true}
}

func (c mergeCompiler) text(s, at string) (*part, error) {
	s, err := yamltemplate.Unescape(s)
	if err != nil {
		return nil, &variable.CompileError{Path: at, Err: err}
	}
	if named, found := nameCurrent(s); found {
		template, err := variable.CompileAt(c.engine, named, at)
		return &part{kind: leafPart, current: template, slot: -1, active: true, plain: true}, err
	}
	name, err := c.name(s, at)
	if err != nil {
		return nil, err
	}
	if name.slot < 0 {
		return &part{kind: leafPart, constant: name.is, fixed: true, size: jsonvalue.Cost + len(name.is), slot: -1, plain: true}, nil
	}
	return &part{kind: leafPart, slot: name.slot, plain: true}, nil
}

// name compiles a string, and records its variables.
func (c mergeCompiler) name(s, at string) (text, error) {
	template, err := variable.CompileAt(c.engine, s, at)
	if err != nil {
		return text{}, err
	}
	if template.Plain() {
		value, err := template.Execute(nil)
		return text{is: jmespath.Text(value), slot: -1}, err
	}
	c.merge.values = append(c.merge.values, template)
	return text{slot: len(c.merge.values) - 1}, nil
}

func (c mergeCompiler) list(items []any, at string, depth int) (*part, error) {
	p := &part{kind: listPart, fixed: true, size: jsonvalue.Cost, slot: -1}
	for i, item := range items {
		place := at + "/" + strconv.Itoa(i)
		if members, _ := item.(map[string]any); len(members) == 1 && members[directive] != nil {
			if err := p.direct(members[directive], place); err != nil {
				return nil, err
			}
			continue
		}
		element, err := c.part(item, place, depth+1)
		if err != nil {
			return nil, err
		}
		p.adopt(element)
		p.plain = p.plain || element.plain
		p.elements = append(p.elements, element)
	}
	if p.fixed {
		values := make([]any, len(p.elements))
		for i, element := range p.elements {
			values[i] = element.constant
		}
		p.constant = values
	}
	return p, nil
}

// direct reads the value of $patch.
func (p *part) direct(value any, at string) error {
	switch value {
	case "merge":
	case "delete", "replace":
		p.directive = value.(string)
		p.fixed, p.active, p.plain = false, true, true
	default:
		return wrong(at+"/"+directive, "%s: want delete, replace or merge", jsonvalue.Show(value))
	}
	return nil
}

// adopt adds the contents of a child to those of p.
func (p *part) adopt(child *part) {
	p.anchored = p.anchored || child.anchored
	p.global = p.global || child.global
	p.active = p.active || child.active
	p.null = p.null || child.null
	p.fixed = p.fixed && child.fixed
	p.size += child.size
}

func (c mergeCompiler) object(members map[string]any, at string, depth int) (*part, error) {
	p := &part{kind: objectPart, fixed: true, size: jsonvalue.Cost, slot: -1}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if err := c.member(p, key, members[key], at+"/"+jsonvalue.Escape(key), depth); err != nil {
			return nil, err
		}
	}
	if p.fixed {
		values := make(map[string]any, len(p.members))
		for _, m := range p.members {
			values[m.name.is] = m.part.constant
		}
		p.constant = values
	}
	return p, nil
}

func (c mergeCompiler) member(p *part, key string, value any, at string, depth int) error {
	if key == directive {
		return p.direct(value, strings.TrimSuffix(at, "/"+directive))
	}
	if strings.HasPrefix(key, "$") {
		return wrong(at, "is a directive that patches here do not have: want $patch")
	}
	modifier, inner := anchorOf(key)
	switch modifier {
	case "(", "<(":
		return c.condition(p, key, value, at, depth)
	case "", "+(":
	default:
		return wrong(at, "an anchor of patterns: patches have (x), <(x) and +(x)")
	}
	name, err := c.name(inner, at)
	if err != nil {
		return err
	}
	child, err := c.part(value, at, depth+1)
	if err != nil {
		return err
	}
	p.adopt(child)
	m := member{name: name, absent: modifier == "+(", part: child}
	if m.absent {
		p.anchored, p.active, p.fixed = true, true, false
	}
	p.fixed = p.fixed && name.slot < 0
	p.plain = p.plain || child.plain && !m.absent
	p.size += len(name.is)
	p.members = append(p.members, m)
	return p.unique(m, at)
}

// unique refuses x together with +(x).
func (p *part) unique(added member, at string) error {
	for _, m := range p.members[:len(p.members)-1] {
		if m.name.slot < 0 && added.name.slot < 0 && m.name.is == added.name.is {
			return wrong(at, "%q is there twice", m.name.is)
		}
	}
	return nil
}

// anchorOf takes an anchor apart: +(x) is "+(" and x. Other keys have none.
func anchorOf(key string) (modifier, inner string) {
	trimmed := strings.TrimSpace(key)
	open := strings.Index(trimmed, "(")
	if open < 0 || open > 1 || !strings.HasSuffix(trimmed, ")") || len(trimmed) < open+3 {
		return "", key
	}
	if open == 1 && !strings.Contains("+<=X^", trimmed[:1]) {
		return "", key
	}
	return trimmed[:open+1], trimmed[open+1 : len(trimmed)-1]
}

// Apply merges the patch into an object. A patch that changes nothing gives the
// same map back. Errors are *SkippedError, with the same map, if the patch is not for this
// object; *Error if it does not fit; and *variable.Error.
func (m *Merge) Apply(data variable.Context, object map[string]any) (map[string]any, error) {
	return m.ApplyWithin(data, object, NewBudget())
}

// ApplyWithin is Apply within a Budget that other patches share.
func (m *Merge) ApplyWithin(data variable.Context, object map[string]any, budget *Budget) (map[string]any, error) {
	r := merging{data: data, values: make([]any, len(m.values)), left: budget}
	for i, template := range m.values {
		value, err := template.Execute(data)
		if err != nil {
			return object, err
		}
		r.values[i] = value
	}
	result, what, err := r.merge(m.root, target{value: object, is: true, field: mergekey.Field{Shape: mergekey.Of(object)}}, 0)
	if err != nil {
		return object, err
	}
	if what != written {
		return object, nil
	}
	return result.(map[string]any), nil
}

// below puts the name of a member before the path of an error.
func below(err error, token string) error {
	if skipped := (*SkippedError)(nil); errors.As(err, &skipped) {
		copied := *skipped
		copied.Path = "/" + jsonvalue.Escape(token) + skipped.Path
		return &copied
	}
	failed := &Error{Err: err}
	errors.As(err, &failed)
	return &Error{Path: "/" + jsonvalue.Escape(token) + failed.Path, Err: failed.Err}
}
