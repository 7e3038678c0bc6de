package given

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Policy returns a policy of kyverno.io, or of the same form, with the values of its context
// entries for objects of a name. A variable replaces each look-up, and a variable falls back to
// its value. Policy does not modify the document, and returns it if there are no values.
func (v *Values) Policy(doc map[string]any, object string) (map[string]any, error) {
	spec, _ := doc["spec"].(map[string]any)
	rules, _ := spec["rules"].([]any)
	meta, _ := doc["metadata"].(map[string]any)
	policy, _ := meta["name"].(string)
	common := v.of(policy, object)
	var changed []any
	for i, raw := range rules {
		rule, ok := raw.(map[string]any)
		if !ok {
			continue
		}
		name, _ := rule["name"].(string)
		of := v.rule(policy, name)
		values := common
		if len(of.Values) > 0 {
			values = maps.Clone(common)
			maps.Copy(values, of.Values)
		}
		done, err := fill(rule, values, of.Foreach)
		if err != nil {
			return nil, fmt.Errorf("values for policy %s, rule %s: %w", policy, name, err)
		}
		if done == nil {
			continue
		}
		if changed == nil {
			changed = slices.Clone(rules)
		}
		changed[i] = done
	}
	if changed == nil {
		return doc, nil
	}
	doc, spec = maps.Clone(doc), maps.Clone(spec)
	spec["rules"], doc["spec"] = changed, spec
	return doc, nil
}

// fill returns the rule with values in its context; nil if there is none for it.
func fill(rule map[string]any, values map[string]any, foreach any) (map[string]any, error) {
	byName, err := tree(values)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(rule)
	used := map[string]bool{}
	touched := false
	if context, ok := fillContext(rule["context"], byName, used); ok {
		out["context"], touched = context, true
	}
	for _, kind := range []string{"validate", "mutate", "generate"} {
		body, ok := rule[kind].(map[string]any)
		if !ok {
			continue
		}
		list, ok := body["foreach"].([]any)
		if !ok {
			continue
		}
		filled, ok, err := fillForeach(list, byName, foreach, used)
		if err != nil {
			return nil, err
		}
		if ok {
			body = maps.Clone(body)
			body["foreach"], out[kind], touched = filled, body, true
		}
	}
	var added []any
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if !used[name] {
			added = append(added, literal(name, byName[name]))
		}
	}
	if len(added) > 0 {
		context, _ := out["context"].([]any)
		out["context"], touched = slices.Concat(added, context), true
	}
	if !touched {
		return nil, nil
	}
	return out, nil
}

// tree converts dotted keys to nested objects, by their first part. It skips keys about the
// request.
func tree(values map[string]any) (map[string]any, error) {
	byName := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path, err := split(key)
		if err != nil {
			return nil, err
		}
		switch path[0] {
		case "request", "serviceAccountName", "serviceAccountNamespace":
			continue
		case "element", "elementIndex", "images", "target":
			return nil, fmt.Errorf("%s: a value for it is not supported: it follows from the object", key)
		}
		put(byName, path, values[key])
	}
	return byName, nil
}

// fillContext replaces the entries of a context that have values, and records their names.
func fillContext(context any, byName map[string]any, used map[string]bool) ([]any, bool) {
	list, _ := context.([]any)
	var out []any
	for i, raw := range list {
		entry, _ := raw.(map[string]any)
		name, _ := entry["name"].(string)
		value, ok := byName[name]
		if !ok {
			continue
		}
		used[name] = true
		if out == nil {
			out = slices.Clone(list)
		}
		if variable, ok := entry["variable"].(map[string]any); ok {
			if variable["default"] == nil {
				variable, entry = maps.Clone(variable), maps.Clone(entry)
				variable["default"], entry["variable"] = escape(value), variable
				out[i] = entry
			}
			continue
		}
		out[i] = literal(name, value)
	}
	return out, out != nil
}

// literal is an entry with a fixed value.
func literal(name string, value any) map[string]any {
	return map[string]any{"name": name, "variable": map[string]any{"value": escape(value)}}
}

// escape escapes a value, so that no part of it is a variable.
func escape(value any) any {
	switch value := value.(type) {
	case string:
		return strings.ReplaceAll(value, "{{", `\{{`)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = escape(item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, item := range value {
			object[key] = escape(item)
		}
		return object
	}
	return value
}

// perElement names the entry that holds the values of all elements.
const perElement = "quaymasterGiven"

// fillForeach does the same in the entries of a foreach, where values may differ for each
// element.
func fillForeach(list []any, byName map[string]any, foreach any, used map[string]bool) ([]any, bool, error) {
	out, touched := slices.Clone(list), false
	for i, raw := range list {
		entry, ok := raw.(map[string]any)
		if !ok {
			continue
		}
		each, err := foreachOf(foreach, i)
		if err != nil {
			return nil, false, err
		}
		context, changed := fillContext(entry["context"], byName, used)
		if !changed {
			context, _ = entry["context"].([]any)
		}
		if len(each) > 0 {
			context, err = fillElements(context, each)
			if err != nil {
				return nil, false, err
			}
			changed = true
		}
		if changed {
			entry = maps.Clone(entry)
			entry["context"] = context
			out[i], touched = entry, true
		}
	}
	return out, touched, nil
}

// foreachOf returns the lists of values for the foreach entry at an index.
func foreachOf(foreach any, place int) (map[string][]any, error) {
	if list, ok := foreach.([]any); ok {
		if place >= len(list) {
			return nil, nil
		}
		foreach = list[place]
	}
	if foreach == nil {
		return nil, nil
	}
	keys, ok := foreach.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("foreachValues: want an object of lists, found %v", foreach)
	}
	each := make(map[string][]any, len(keys))
	for key, value := range keys {
		list, ok := value.([]any)
		if !ok {
			return nil, fmt.Errorf("foreachValues.%s: want a list with a value for each element, found %v", key, value)
		}
		each[key] = list
	}
	return each, nil
}

// fillElements inserts the values of each element before the context entries that they replace.
func fillElements(context []any, each map[string][]any) ([]any, error) {
	lists := map[string][]any{} // by name, an object for each element
	for _, key := range slices.Sorted(maps.Keys(each)) {
		path, err := split(key)
		if err != nil {
			return nil, err
		}
		for i, value := range each[key] {
			for len(lists[path[0]]) <= i {
				lists[path[0]] = append(lists[path[0]], nil)
			}
			whole := map[string]any{path[0]: lists[path[0]][i]}
			put(whole, path, value)
			lists[path[0]][i] = whole[path[0]]
		}
	}
	var out []any
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		held := perElement + "_" + name
		out = append(out, literal(held, lists[name]), map[string]any{
			"name": name, "variable": map[string]any{"jmesPath": "lookup(" + held + ", elementIndex)"},
		})
	}
	for _, raw := range context {
		entry, _ := raw.(map[string]any)
		if name, _ := entry["name"].(string); lists[name] == nil || entry["variable"] != nil {
			out = append(out, raw)
		}
	}
	return out, nil
}

// WithoutUsers returns a policy of kyverno.io whose rules match every user: it removes roles and
// subjects from match, and keeps the conditions on objects. It is for requests without a known
// user.
func WithoutUsers(doc map[string]any) map[string]any {
	spec, _ := doc["spec"].(map[string]any)
	rules, _ := spec["rules"].([]any)
	var changed []any
	for i, raw := range rules {
		rule, _ := raw.(map[string]any)
		match, ok := rule["match"].(map[string]any)
		if !ok {
			continue
		}
		stripped, touched := withoutUsers(match)
		if !touched {
			continue
		}
		if changed == nil {
			changed = slices.Clone(rules)
		}
		rule = maps.Clone(rule)
		rule["match"], changed[i] = stripped, rule
	}
	if changed == nil {
		return doc
	}
	doc, spec = maps.Clone(doc), maps.Clone(spec)
	spec["rules"], doc["spec"] = changed, spec
	return doc
}

// withoutUsers strips a filter, or the filters in any and all.
func withoutUsers(filter map[string]any) (map[string]any, bool) {
	out, touched := maps.Clone(filter), false
	for _, key := range []string{"any", "all"} {
		list, ok := filter[key].([]any)
		if !ok {
			continue
		}
		list = slices.Clone(list)
		for i, raw := range list {
			if one, ok := raw.(map[string]any); ok {
				stripped, is := withoutUsers(one)
				list[i], touched = stripped, touched || is
			}
		}
		out[key] = list
	}
	if filter["resources"] == nil {
		return out, touched
	}
	for _, key := range []string{"roles", "clusterRoles", "subjects"} {
		if _, ok := filter[key]; ok {
			delete(out, key)
			touched = true
		}
	}
	return out, touched
}
