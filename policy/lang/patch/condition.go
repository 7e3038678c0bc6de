package patch

import (
	"cmp"
	"errors"
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/jsonvalue"
	"github.com/quaymaster/quaymaster/policy/lang/pattern"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// condition is (x) or <(x) with its pattern.
type condition struct {
	anchor  string // as in the policy
	name    text
	global  bool
	pattern *pattern.Pattern // nil if the member need only exist
}

// errAbsent is why a condition on a member that is not there does not hold.
var errAbsent = errors.New("the object has no such field")

// condition compiles (x) or <(x) of an object.
func (c mergeCompiler) condition(p *part, key string, value any, at string, depth int) error {
	_, inner := anchorOf(key)
	name, err := c.name(inner, at)
	if err != nil {
		return err
	}
	found := condition{anchor: strings.TrimSpace(key), name: name, global: strings.HasPrefix(strings.TrimSpace(key), "<")}
	p.anchored, p.active, p.fixed = true, true, false
	p.global = p.global || found.global
	if adds(value) {
		child, err := c.part(value, at, depth+1)
		if err != nil {
			return err
		}
		p.adopt(child)
		p.conditions = append(p.conditions, found)
		p.members = append(p.members, member{name: name, part: child})
		return p.unique(p.members[len(p.members)-1], at)
	}
	switch value.(type) {
	case map[string]any, []any, string:
	default:
		// Kyverno compares scalars as text: "true" is true.
		value = jmespath.Text(value)
	}
	found.pattern, err = pattern.Compile(c.engine, value)
	if err != nil {
		if inside := (*variable.CompileError)(nil); errors.As(err, &inside) {
			return &variable.CompileError{Path: at + inside.Path, Err: inside.Err}
		}
		return &variable.CompileError{Path: at, Err: err}
	}
	p.conditions = append(p.conditions, found)
	return nil
}

// adds reports whether a condition's value is an object with +(x) in it.
func adds(value any) bool {
	members, _ := value.(map[string]any)
	for key := range members {
		if modifier, _ := anchorOf(key); modifier == "+(" {
			return true
		}
	}
	return false
}

// decide checks the conditions of an object, those that decide for all of the
// patch first.
func (r *merging) decide(conditions []condition, members map[string]any) error {
	for _, global := range []bool{true, false} {
		for _, c := range conditions {
			if c.global != global {
				continue
			}
			if err := r.holds(c, members); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *merging) holds(c condition, members map[string]any) error {
	name := r.text(c.name)
	value, ok := members[name]
	if !ok {
		return &SkippedError{Path: "/" + jsonvalue.Escape(name), Anchor: c.anchor, Err: errAbsent, global: c.global}
	}
	if c.pattern == nil {
		return nil
	}
	result := r.match(c.pattern, value)
	switch {
	case result.Err != nil || result.Doubt != nil:
		return &Error{Path: "/" + jsonvalue.Escape(name), Err: cmp.Or(result.Err, result.Doubt)}
	case !result.Held || result.Partly:
		return &SkippedError{Path: "/" + jsonvalue.Escape(name), Anchor: c.anchor, Err: errors.New(result.Why), global: c.global}
	}
	return nil
}

// match compares numbers and booleans as themselves and, as Kyverno does, as text.
func (r *merging) match(p *pattern.Pattern, value any) pattern.Result {
	switch value.(type) {
	case map[string]any, []any, string:
		return p.MatchCondition(r.data, value)
	case nil:
	default:
		if result := p.MatchCondition(r.data, value); result.Held && !result.Partly {
			return result
		}
	}
	return p.MatchCondition(r.data, jmespath.Text(value))
}
