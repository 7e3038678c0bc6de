package document

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode"

	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// Unbraced refuses conditions without any variable whose key begins as an expression does: it is a
// text, since it is not in braces, and the condition has the same result for every object. Names
// that are known are those that an expression may begin with; element and target are always.
func Unbraced(doc any, path string, isKnown func(name string) bool) error {
	var errs []error
	switch v := doc.(type) {
	case []any:
		for _, item := range v {
			errs = append(errs, Unbraced(item, path, isKnown))
		}
	case map[string]any:
		if _, is := v["key"]; is {
			return unbraced(v, path, isKnown)
		}
		errs = append(errs, Unbraced(v["any"], path, isKnown), Unbraced(v["all"], path, isKnown))
	}
	return errors.Join(errs...)
}

// Constant refuses conditions of statements without any variable: they read nothing of a statement,
// and have the same result for each.
func Constant(doc any, path string) error {
	var errs []error
	switch v := doc.(type) {
	case []any:
		for _, item := range v {
			errs = append(errs, Constant(item, path))
		}
	case map[string]any:
		if key, is := v["key"]; is {
			if written, err := json.Marshal(v); err == nil && !strings.Contains(string(written), "{{") {
				return field.Fail(path, "a condition without a variable has the same result for every statement: write the key %v as {{ %v }}", key, key)
			}
			return nil
		}
		errs = append(errs, Constant(v["any"], path), Constant(v["all"], path))
	}
	return errors.Join(errs...)
}

func unbraced(condition map[string]any, path string, isKnown func(name string) bool) error {
	key, _ := condition["key"].(string)
	written, err := json.Marshal(condition)
	if err != nil {
		return field.Fail(path, "%w", err)
	}
	if strings.Contains(string(written), "{{") {
		return nil // its variables are checked elsewhere
	}
	text := strings.Trim(key, "${}() ")
	name := text
	if end := strings.IndexFunc(text, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }); end >= 0 {
		name = text[:end]
	}
	rest := strings.TrimLeft(text[len(name):], " ")
	isElement := name == "element" || name == "elementIndex" || name == "serviceAccountName" || name == "serviceAccountNamespace"
	switch follows := rest != "" && strings.ContainsRune(".[|", rune(rest[0])); {
	case rest == "" && isElement:
	case follows && name != "" && (isElement || name == "target" || isKnown(name)):
	default:
		return nil
	}
	return field.Fail(path, "the key %q is a text, and the condition has the same result for every object: write {{ %s }}", key, text)
}
