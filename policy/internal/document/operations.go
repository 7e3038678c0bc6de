package document

import (
	"errors"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Operations refuses conditions that compare the operation of the request with a text that is none,
// in blocks and lists of conditions: they have the same result for every request. Expressions that
// compare it are refused when they are compiled.
func Operations(doc any, path string) error {
	var errs []error
	switch v := doc.(type) {
	case []any:
		for _, item := range v {
			errs = append(errs, Operations(item, path))
		}
	case map[string]any:
		if key, hasKey := v["key"]; hasKey {
			return errors.Join(checkOperation(key, v["value"], path), checkOperation(v["value"], key, path))
		}
		errs = append(errs, Operations(v["any"], path), Operations(v["all"], path))
	}
	return errors.Join(errs...)
}

// checkOperation: a default of the operation is one of its values.
func checkOperation(operation, other any, path string) error {
	text, _ := operation.(string)
	rest, reads := strings.CutPrefix(strings.ReplaceAll(text, " ", ""), "{{request.operation")
	rest, closed := strings.CutSuffix(rest, "}}")
	fallback, hasDefault := strings.CutPrefix(rest, "||'")
	fallback = strings.TrimSuffix(fallback, "'")
	if !reads || !closed || rest != "" && !hasDefault || strings.ContainsAny(fallback, "'{}|") {
		return nil
	}
	known := builtin.Operations()
	if hasDefault {
		known = append(known, fallback)
	}
	others, isList := other.([]any)
	if !isList {
		others = []any{other}
	}
	for _, other := range others {
		text, isText := other.(string)
		if !isText || strings.Contains(text, "{{") || strings.HasPrefix(text, "[") {
			continue
		}
		if !slices.ContainsFunc(known, func(o string) bool { return wildcard.Match(text, o) }) {
			return field.Fail(path, "%q is no operation of a request: want CREATE, UPDATE, DELETE or CONNECT", text)
		}
	}
	return nil
}
