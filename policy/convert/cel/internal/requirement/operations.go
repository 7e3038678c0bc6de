package requirement

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

// Operations separates the conditions on the operation of the request from preconditions that must all hold: the
// operations that they allow, of those that are given, and the rest of the preconditions.
func Operations(preconditions any, given []string) (allowed []string, rest any) {
	block, ok := preconditions.(map[string]any)
	if !ok {
		return given, preconditions
	}
	name, items := "all", list(block["all"])
	if len(items) == 0 && len(list(block["any"])) == 1 {
		name, items = "any", list(block["any"])
	}
	if len(items) == 0 || name == "all" && len(list(block["any"])) > 0 {
		return given, preconditions
	}
	allowed = given
	var others []any
	for _, item := range items {
		condition, _ := item.(map[string]any)
		is := ofOperation(condition)
		if is == nil {
			others = append(others, item)
			continue
		}
		allowed = slices.DeleteFunc(slices.Clone(allowed), func(operation string) bool { return !is(operation) })
	}
	if len(others) == 0 {
		return allowed, nil
	}
	return allowed, map[string]any{name: others}
}

func list(v any) []any {
	items, _ := v.([]any)
	return items
}

// ofOperation returns whether a condition holds for an operation; nil for a condition on anything else. A default of
// the operation is for a request that has none, which there is not.
func ofOperation(condition map[string]any) func(operation string) bool {
	key, _ := condition["key"].(string)
	key = strings.ReplaceAll(strings.TrimSpace(strings.Trim(key, "{}")), " ", "")
	key, _, _ = strings.Cut(key, "||")
	if key != "request.operation" || len(condition) != 3 {
		return nil
	}
	values, isList := condition["value"].([]any)
	if !isList {
		values = []any{condition["value"]}
	}
	for _, v := range values {
		if text, ok := v.(string); !ok || strings.ContainsAny(text, "*?{[") {
			return nil
		}
	}
	in := func(operation string) bool { return slices.Contains(values, any(operation)) }
	switch condition["operator"] {
	case "Equals", "Equal", "In", "AnyIn", "AllIn":
		return in
	case "NotEquals", "NotEqual", "NotIn", "AnyNotIn", "AllNotIn":
		return func(operation string) bool { return !in(operation) }
	}
	return nil
}

// Restrict limits a match to operations. A filter that names none has those that are given.
func Restrict(m match.Document, given []string, allow func([]string) []string) match.Document {
	one := func(f match.Filter) match.Filter {
		operations := f.Resources.Operations
		if len(operations) == 0 {
			operations = given
		}
		f.Resources.Operations = allow(operations)
		return f
	}
	out := m
	out.Any, out.All = slices.Clone(m.Any), slices.Clone(m.All)
	for i := range out.Any {
		out.Any[i] = one(out.Any[i])
	}
	for i := range out.All {
		out.All[i] = one(out.All[i])
	}
	if len(m.Any)+len(m.All) == 0 {
		out.Filter = one(m.Filter)
	}
	return out
}

// OperationsOf returns the operations of a match in which each filter names its own.
func OperationsOf(m match.Document) (all []string) {
	for _, f := range filtersOf(m) {
		for _, o := range f.Resources.Operations {
			if !slices.Contains(all, o) && o != "CONNECT" {
				all = append(all, o)
			}
		}
	}
	return all
}
