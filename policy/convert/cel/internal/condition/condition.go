package condition

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// use tells what conditions decide, which determines the result where they are indeterminate in the source.
type use byte

const (
	acts    use = iota // a change or an exemption: not where it is indeterminate
	denies             // a denial where they hold; a wildcard of the data covers texts
	demands            // an evaluation where they hold
)

// Compile writes conditions, JSON as encoding/json decodes it, of a rule that changes something: in doubt they do
// not hold, or fail. What has no form is a *source.Unsupported with the path below the conditions.
func Compile(conditions any, scope jmespath.Scope) (string, error) {
	made, err := compile(conditions, scope, acts)
	return made.holds.Text, err
}

// CompileExempting is Compile for conditions that demand less where they hold, as those of an exception.
func CompileExempting(conditions any, scope jmespath.Scope) (string, error) {
	return Compile(conditions, scope)
}

// CompileDemanding writes preconditions of a rule that denies: in doubt they hold, or fail.
func CompileDemanding(conditions any, scope jmespath.Scope) (term.Term, error) {
	made, err := compile(conditions, scope, demands)
	return made.holds, err
}

// CompileDeny writes that deny conditions do not hold, so that an object is admitted: in doubt they hold, or
// fail. The result Fails if the conditions of the source may fail or be indeterminate. It is doubtful if a text
// of the data may decide as a pattern, where the source is indeterminate.
func CompileDeny(conditions any, scope jmespath.Scope) (admits term.Term, doubtful bool, err error) {
	made, err := compile(conditions, scope, denies)
	made.fails.Fails, made.fails.Needs = made.strict || made.unsure, slices.Compact(made.needs)
	return made.fails, made.doubtful, err
}

// result is a condition in both polarities.
type result struct {
	holds, fails term.Term
	// strict: the source fails where a key is missing, whatever the conditions behind it.
	strict bool
	// unsure: it fails where the source is indeterminate, which conditions behind it may overrule.
	unsure bool
	// doubtful: a text of the data may decide as a pattern, where the source is indeterminate.
	doubtful bool
	// needs are conditions under which the source does not fail.
	needs []string
}

type compiler struct {
	scope jmespath.Scope
	use   use
}

func compile(conditions any, scope jmespath.Scope, use use) (result, error) {
	c := compiler{scope: scope, use: use}
	switch v := conditions.(type) {
	case nil:
		return always(), nil
	case map[string]any:
		return c.block(v, "")
	case []any:
		var all, flat []result
		for i, item := range v {
			place := "[" + strconv.Itoa(i) + "]"
			object, ok := item.(map[string]any)
			if !ok {
				return result{}, &source.Unsupported{Path: place, Found: "no condition"}
			}
			if object["any"] != nil || object["all"] != nil {
				one, err := c.block(object, place)
				if err != nil {
					return one, err
				}
				all = append(all, one)
				continue
			}
			one, err := c.one(object, place)
			if err != nil {
				return one, err
			}
			flat = append(flat, one)
		}
		return c.every(append(all, flat...))
	}
	return result{}, &source.Unsupported{Found: "no conditions"}
}

func always() result {
	return result{holds: term.Term{Text: "true", Rank: term.Primary}, fails: term.Term{Text: "false", Rank: term.Primary}}
}

// block is a block of any and all: each that is there must hold.
func (c compiler) block(object map[string]any, path string) (result, error) {
	var parts []result
	for _, name := range []string{"any", "all"} {
		items, ok := object[name].([]any)
		if !ok {
			continue
		}
		var list []result
		for i, item := range items {
			place := source.Index(source.Below(path, name), i)
			one, ok := item.(map[string]any)
			if !ok {
				return result{}, &source.Unsupported{Path: place, Found: "no condition"}
			}
			made, err := c.one(one, place)
			if err != nil {
				return made, err
			}
			list = append(list, made)
		}
		combine := c.every
		if name == "any" {
			combine = c.some
		}
		made, err := combine(list)
		if err != nil {
			return made, below(source.Below(path, name), err)
		}
		parts = append(parts, made)
	}
	return c.every(parts)
}

// every holds where each part does. A part that fails in the source decides before those behind it, which && and
// || of CEL would overrule.
func (c compiler) every(parts []result) (result, error) {
	if len(parts) == 0 {
		return always(), nil
	}
	last := len(parts) - 1
	out := parts[last]
	for _, one := range slices.Backward(parts[:last]) {
		if one.strict && one.unsure {
			return out, refuse("a condition that may be indeterminate or fail, before others")
		}
		switch {
		case one.strict && c.use == acts: // neither holds in doubt
			out.holds, out.fails = conditional(one.holds, out.holds.In(term.Or), "false"), conditional(one.fails, "true", out.fails.In(term.Or))
		case one.strict:
			out.holds, out.fails = conditional(one.holds, out.holds.In(term.Or), "false"), conditional(one.holds, out.fails.In(term.Or), "true")
		default:
			out.holds, out.fails = joined(one.holds, out.holds, term.And), joined(one.fails, out.fails, term.Or)
		}
		out.needs = append(slices.Clone(one.needs), out.needs...)
		out.strict, out.unsure, out.doubtful = out.strict || one.strict, out.unsure || one.unsure, out.doubtful || one.doubtful
	}
	return out, nil
}

// some holds where one of the parts does.
func (c compiler) some(parts []result) (result, error) {
	opposite := make([]result, len(parts))
	doubtful := false
	for i, one := range parts {
		if c.use == demands && doubtful && one.strict {
			return one, refuse("a condition that may fail, behind one that a text with wildcards may decide")
		}
		doubtful = doubtful || one.doubtful
		opposite[i] = one.opposite()
	}
	made, err := c.every(opposite)
	return made.opposite(), err
}

func conditional(when term.Term, then, otherwise string) term.Term {
	return term.Term{Text: when.In(term.Or) + " ? " + then + " : " + otherwise, Rank: term.Ternary}
}

// joined joins two parts; to parts of the same operator it adds without parentheses.
func joined(left, right term.Term, by term.Rank) term.Term {
	sign := " && "
	if by == term.Or {
		sign = " || "
	}
	return term.Term{Text: left.In(by) + sign + right.In(by), Rank: by}
}

// one is a condition.
func (c compiler) one(object map[string]any, path string) (result, error) {
	for _, field := range slices.Sorted(maps.Keys(object)) {
		if field != "key" && field != "operator" && field != "value" {
			return result{}, &source.Unsupported{Path: source.Below(path, field), Found: "a field of a condition"}
		}
	}
	key, err := jmespath.Value(object["key"], c.scope)
	if err != nil {
		return result{}, below(source.Below(path, "key"), err)
	}
	value, err := jmespath.Value(object["value"], c.scope)
	if err != nil {
		return result{}, below(source.Below(path, "value"), err)
	}
	name, _ := object["operator"].(string)
	if name == "AnyIn" {
		key.Term = withoutNull(key.Term)
	}
	if key.Null && key.Missing || value.Null && value.Missing {
		return result{}, &source.Unsupported{Path: path, Found: "a value that may be null, or missing, which is an error: write a default"}
	}
	made, err := c.operator(name, key.Term, value.Term)
	if err != nil {
		return made, below(path, err)
	}
	made = c.guarded(made, slices.Concat(key.Guards, value.Guards))
	negated := strings.Contains(name, "Not")
	made.unsure = made.unsure || negated && (key.Null || value.Null)
	made.doubtful = key.Fixed == nil && c.covers(elementOf(key.Term), c.use != acts) || value.Fixed == nil && c.covers(elementOf(value.Term), c.use != acts)
	made.needs = slices.Concat(key.Needs, value.Needs)
	made.strict = key.Missing || value.Missing || key.Fails || value.Fails
	return made, nil
}

// withoutNull is a list that an API server may write as null, as the verbs of a ClusterRole's rule: an empty one then.
func withoutNull(t term.Term) term.Term {
	if t.Path == nil || !t.Path.Nil || t.List == nil || t.List.Element != nil || strings.Count(t.Path.Optional, "?") > 1 {
		return t
	}
	t.List, t.Null = t.List.Clone(), false
	first := &t.List.Levels[0]
	first.Strict, first.StrictRank = "("+t.Path.Direct+" != null ? "+t.Path.Direct+" : [])", term.Primary
	return t
}

// elementOf is an element of a list, and any other value itself.
func elementOf(t term.Term) term.Term {
	if t.List != nil {
		return t.List.Each()
	}
	return t
}

// guarded adds conditions that fail where the source does. Where they do not hold, the result leads to a denial, or
// to nothing.
func (c compiler) guarded(made result, guards []string) result {
	for _, guard := range guards {
		there := term.Term{Text: guard, Rank: term.Relation}
		holds := "true"
		if c.use == acts {
			holds = "false"
		}
		made.holds, made.fails = conditional(there, made.holds.In(term.Or), holds), conditional(there, made.fails.In(term.Or), "false")
	}
	return made
}

// below adds a path to an error.
func below(path string, err error) error {
	if found, ok := err.(*source.Unsupported); ok { //nolint:errorlint // of this package, never wrapped
		return &source.Unsupported{Path: source.Below(path, found.Path), Found: found.Found}
	}
	return err
}
