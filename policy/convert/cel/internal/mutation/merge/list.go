package merge

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutation"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/overlay"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// optionally precedes the text of a list that may be missing.
const optionally = "?"

// list writes the elements of a list; an empty text means that nothing is written.
func (w *writer) list(items []any, at mutation.Place, where string) (text string, sample []any, err error) {
	rule := w.rule(at.Path...)
	var named, chosen []map[string]any
	for i, item := range items {
		here := source.Index(where, i)
		members, isObject := item.(map[string]any)
		if len(rule.Keys) > 0 && !isObject {
			return "", nil, &source.Unsupported{Path: here, Found: "a value in a list of objects"}
		}
		switch {
		case members["$patch"] != nil:
			return "", nil, &source.Unsupported{Path: here, Found: "a directive"}
		case isQuestion(item):
			if err := w.question(members, at, here); err != nil {
				return "", nil, err
			}
		case hasAnchor(members) && (len(rule.Keys) == 0 || members[rule.Keys[0]] == nil):
			chosen = append(chosen, members)
		default:
			named = append(named, members)
		}
	}
	switch {
	case len(named)+len(chosen) == 0 && len(items) > 0:
		return "", nil, nil
	case len(named) > 0 && len(chosen) > 0 || len(chosen) > 1:
		return "", nil, &source.Unsupported{Path: where, Found: "several elements of which anchors select some"}
	case rule.Set:
		return "", nil, &source.Unsupported{Path: where, Found: "a list that is a set"}
	case len(chosen) == 1:
		return w.chosen(chosen[0], at, where, rule.Keys)
	case len(rule.Keys) == 0 || len(items) == 0:
		return w.replaced(items, at, where)
	}
	return w.named(named, at, where, rule.Keys)
}

// replaced writes a list that is replaced.
func (w *writer) replaced(items []any, at mutation.Place, where string) (string, []any, error) {
	if !at.InElement {
		return "", nil, w.patch(items, at, where, false)
	}
	text, err := w.whole(items, where)
	return text, items, err
}

// named writes elements with their keys.
func (w *writer) named(items []map[string]any, at mutation.Place, where string, keys []string) (string, []any, error) {
	var texts, names []string
	var samples []any
	for i, members := range items {
		here := source.Index(where, i)
		if conditions, err := selecting(members, mutation.Place{Direct: "item"}, here); err != nil || len(conditions) > 0 {
			return "", nil, cmp.Or(err, error(&source.Unsupported{Path: here, Found: "a conditional anchor beside the key of an element"}))
		}
		key, is := members[keys[0]].(string)
		if strings.Contains(key, "{{") {
			return "", nil, &source.Unsupported{Path: here, Found: "a variable in the key of an element"}
		}
		if !is || len(keys) > 1 {
			return "", nil, &source.Unsupported{Path: here, Found: "an element of a list with the keys " + strings.Join(keys, " and ")}
		}
		name, err := w.leaf(key, source.Below(here, keys[0]))
		if err != nil {
			return "", nil, err
		}
		element := elementOf(at)
		element.Direct = at.Or("[]") + ".filter(" + mutation.Singular(at.Last()) + ", " + mutation.Singular(at.Last()) + "." + keys[0] + " == " + name.Text + ")"
		element.Direct, element.Optional = element.Direct+"[0]", element.Direct+"[?0]"
		element.Selector = mutation.Singular(at.Last()) + "." + keys[0] + " == " + name.Text
		inner, err := w.object(members, element, here)
		if err != nil {
			return "", nil, err
		}
		texts, names, samples = append(texts, inner.text(at.Object)), append(names, name.Text), append(samples, inner.sample)
	}
	if at.List != nil && len(at.Path) != len(at.List.Path)+1 {
		return "", nil, &source.Unsupported{Path: where, Found: "a list with keys below an object in an element"}
	}
	w.first(at, keys[0], names)
	return mutation.Inline("[", texts, "]"), samples, nil
}

// first puts the elements with some keys first in their list, once they are merged.
func (w *writer) first(at mutation.Place, key string, names []string) {
	item := mutation.Singular(at.Last())
	list := at.Direct
	if at.List != nil {
		list = mutation.Singular(at.List.Last()) + "." + at.Last()
	}
	var parts []string
	for _, name := range names {
		parts = append(parts, list+".filter("+item+", "+item+"."+key+" == "+name+")")
	}
	others := item + "." + key + " != " + names[0]
	if len(names) > 1 {
		others = "!(" + item + "." + key + " in [" + strings.Join(names, ", ") + "])"
	}
	value := strings.Join(append(parts, list+".filter("+item+", "+others+")"), " + ")
	if at.List == nil {
		w.after = append(w.after, mutation.Step("replace", at.Pointer, value))
		return
	}
	outer := mutation.Singular(at.List.Last())
	arguments := "i, " + outer + ", "
	if at.Selector != "" {
		arguments += at.Selector + ", "
	}
	made := strings.Trim(mutation.Step("replace", at.List.Pointer.Element("i").Add(at.Last()), value), "[]")
	w.nested = append(w.nested, at.List.Or("[]")+".transformList("+arguments+made+")")
}

// chosen writes an element for those that anchors select.
func (w *writer) chosen(members map[string]any, at mutation.Place, where string, keys []string) (string, []any, error) {
	if len(keys) != 1 || at.InElement {
		return "", nil, &source.Unsupported{Path: where, Found: "elements that anchors select, in such a list"}
	}
	item := mutation.Singular(at.Last())
	each := w.Each
	if each != nil {
		item = each.Name
	}
	w.chooses = w.chooses || each == nil
	element := elementOf(at)
	element.Direct = item
	wanted := maps.Clone(members)
	if key := "(" + keys[0] + ")"; wanted[key] == "*" || wanted[key] == "?*" {
		delete(wanted, key) // every element has its key
	}
	conditions, err := selecting(wanted, element, where)
	if err != nil {
		return "", nil, err
	}
	if each != nil && each.Condition != "" {
		conditions = append([]string{each.Condition}, conditions...)
	}
	element.Selector = joined(conditions)
	inner, err := w.object(members, element, where)
	if err != nil || len(inner.fields) == 0 {
		return "", nil, err
	}
	inner.fields = append([]field{{name: keys[0], text: item + "." + keys[0]}}, inner.fields...)
	inner.sample[keys[0]] = "x"
	mayLack := at.Optional != "" && (each == nil || !each.Fails)
	list := at.Direct
	if mayLack {
		list = at.Last()
	}
	if unwritten := lacking(members, element); unwritten != "" && (each == nil || !each.plain) {
		conditions = append(conditions, unwritten)
	}
	if !mayLack {
		at.Optional = ""
	}
	if len(conditions) > 0 {
		w.moved = append(w.moved, at.Last())
	}
	w.before = slices.Concat(w.before, reordered(at, list, item, conditions))
	if element.Selector != "" {
		list += ".filter(" + item + ", " + element.Selector + ")"
	}
	text := list + ".map(" + item + ", " + inner.text(at.Object) + ")"
	if mayLack {
		text = optionally + at.Optional + ".optMap(" + at.Last() + ", " + text + ")"
	}
	return text, []any{inner.sample}, nil
}

// selecting are the conditions of an element, and of the objects in it.
func selecting(members map[string]any, at mutation.Place, where string) (all []string, err error) {
	for _, key := range order(members) {
		anchor, name := anchorOf(key)
		here := source.Below(where, key)
		inner, isObject := members[key].(map[string]any)
		switch {
		case anchor == "(":
			one, err := holds(name, members[key], at, here)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		case anchor == "+" && hasAnchor(inner):
			return nil, &source.Unsupported{Path: here, Found: "anchors in one for what is missing"}
		case isObject:
			more, err := selecting(inner, at.At(name), here)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
	}
	return all, nil
}

// reordered puts the elements first for which conditions hold, those that a strategic merge moves.
func reordered(at mutation.Place, list, item string, conditions []string) []string {
	if len(conditions) == 0 {
		return nil
	}
	moved := joined(conditions)
	value := list + ".filter(" + item + ", " + moved + ") + " + list + ".filter(" + item + ", !(" + moved + "))"
	made := mutation.Step("replace", at.Pointer, value)
	if at.Optional != "" {
		made = at.Optional + ".optMap(" + at.Last() + ", " + made + ").orValue([])"
	}
	return []string{made}
}

// lacking holds for an element that a part changes for certain, if that depends on the element: it writes
// nothing but members that are missing.
func lacking(members map[string]any, at mutation.Place) string {
	var all []string
	for _, key := range order(members) {
		anchor, name := anchorOf(key)
		switch inner, isObject := members[key].(map[string]any); {
		case anchor == "(" || anchor == "<":
		case anchor == "+":
			all = append(all, "!"+at.At(name).Present())
		case isObject && hasAnchor(inner):
			one := lacking(inner, at.At(name))
			if one == "" {
				return ""
			}
			all = append(all, one)
		default:
			return ""
		}
	}
	return strings.Join(all, " || ")
}

func joined(conditions []string) string {
	if len(conditions) == 1 {
		return conditions[0]
	}
	each := slices.Clone(conditions)
	for i, one := range each {
		if strings.Contains(one, "||") {
			each[i] = "(" + one + ")"
		}
	}
	return strings.Join(each, " && ")
}

// elementOf is the place of an element; the caller says how it is read.
func elementOf(at mutation.Place) mutation.Place {
	list := at
	return mutation.Place{Object: at.Object, Path: at.Path, InElement: true, Known: at.Known, List: &list}
}

// isQuestion reports whether an element decides alone whether the patch is made.
func isQuestion(value any) bool {
	members, _ := value.(map[string]any)
	for key, one := range members {
		if anchor, _ := anchorOf(key); anchor == "<" || isQuestion(one) {
			return true
		}
	}
	return false
}

// hasAnchor reports whether an object has an anchor, or one in it.
func hasAnchor(members map[string]any) bool {
	for key, value := range members {
		if anchor, _ := anchorOf(key); anchor != "" {
			return true
		}
		if inner, _ := value.(map[string]any); hasAnchor(inner) {
			return true
		}
	}
	return false
}

// question requires an element for which all anchors hold.
func (w *writer) question(members map[string]any, at mutation.Place, where string) error {
	if at.InElement {
		return &source.Unsupported{Path: where, Found: "a global anchor in a list of a list"}
	}
	item := mutation.Singular(at.Last())
	conditions, err := anchors(members, mutation.Place{Direct: item}, where)
	if err != nil {
		return err
	}
	list := at.Or("[]")
	w.out.Conditions = append(w.out.Conditions, mutation.Condition{Name: at.Last(), Expression: list + ".exists(" + item + ", " + joined(conditions) + ")"})
	return nil
}

// anchors are the conditions in an element that is a question.
func anchors(members map[string]any, at mutation.Place, where string) (all []string, err error) {
	for _, key := range order(members) {
		anchor, name := anchorOf(key)
		here := source.Below(where, key)
		switch inner, isObject := members[key].(map[string]any); {
		case anchor == "(" || anchor == "<":
			one, err := holds(name, members[key], at, here)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		case anchor != "" || !isObject:
			return nil, &source.Unsupported{Path: here, Found: "a field beside a global anchor, which is not written"}
		default:
			more, err := anchors(inner, at.At(name), here)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
	}
	return all, nil
}

// condition adds a condition of the whole patch.
func (w *writer) condition(name string, value any, at mutation.Place, where string) error {
	expression, err := holds(name, value, at, where)
	if err != nil {
		return err
	}
	label := name[strings.LastIndex(name, "/")+1:]
	w.out.Conditions = append(w.out.Conditions, mutation.Condition{Name: label, Expression: expression})
	return nil
}

// holds writes the condition of an anchor.
func holds(name string, pattern any, at mutation.Place, where string) (string, error) {
	member := at.At(name)
	switch p := pattern.(type) {
	case bool:
		pattern = map[bool]string{true: "true", false: "false"}[p] // compared as text
	case string:
		if strings.Contains(p, "{{") {
			return "", &source.Unsupported{Path: where, Found: "a variable in an anchor"}
		}
	case map[string]any:
		if len(p) == 0 {
			return member.Present(), nil
		}
	}
	wrapped := map[string]any{name: pattern}
	object := at.Direct
	if at.Optional != "" || strings.Contains(at.Direct, ".") {
		steps := strings.Split(at.Direct, ".")
		object = steps[0]
		inner := any(map[string]any{name: pattern})
		for _, step := range slices.Backward(steps[1:]) {
			if !celtext.IsField(step) {
				return "", &source.Unsupported{Path: where, Found: "an anchor below such a field"}
			}
			inner = map[string]any{step: inner}
		}
		wrapped, _ = inner.(map[string]any)
	}
	text, err := overlay.Expression(wrapped, overlay.Options{Object: object})
	if err != nil {
		var found *source.Unsupported
		if errors.As(err, &found) {
			return "", &source.Unsupported{Path: where, Found: found.Found}
		}
		return "", err
	}
	if s, isText := pattern.(string); !isText || strings.ContainsAny(s, "<>!|") {
		if present := member.Present(); present != "true" && !strings.Contains(text, present) {
			text = present + " && (" + text + ")"
		}
	}
	return text, nil
}
