package rulecontext

import (
	"errors"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// CheckConditions refuses conditions that have the same result in every evaluation, as Kyverno
// does: those with a variable that nothing defines, see Undefined, those that compare the operation
// of the request with a text that is none, and those with an expression that lacks its braces.
func CheckConditions(doc any, path string, known []string) error {
	isKnown := func(name string) bool { return Reserved(name) || slices.Contains(known, name) }
	return errors.Join(Undefined(doc, path, known), checkOperations(doc, path), document.Unbraced(doc, path, isKnown))
}

// checkOperations searches blocks and lists of conditions.
func checkOperations(doc any, path string) error {
	var errs []error
	switch v := doc.(type) {
	case []any:
		for _, item := range v {
			errs = append(errs, checkOperations(item, path))
		}
	case map[string]any:
		key, _ := v["key"].(string)
		if strings.ReplaceAll(key, " ", "") == "{{request.operation}}" {
			return checkOperation(v["value"], path)
		}
		errs = append(errs, checkOperations(v["any"], path), checkOperations(v["all"], path))
	}
	return errors.Join(errs...)
}

func checkOperation(value any, path string) error {
	values, isList := value.([]any)
	if !isList {
		values = []any{value}
	}
	for _, value := range values {
		text, isText := value.(string)
		if !isText || strings.Contains(text, "{{") || strings.HasPrefix(text, "[") {
			continue
		}
		if !slices.ContainsFunc([]string{"CREATE", "UPDATE", "DELETE", "CONNECT"}, func(o string) bool { return wildcard.Match(text, o) }) {
			return field.Fail(path, "%q is no operation of a request: want CREATE, UPDATE, DELETE or CONNECT", text)
		}
	}
	return nil
}
