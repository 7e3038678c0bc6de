package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// Unsupported is the error for a field that this version cannot honour.
func Unsupported(path, what string) error {
	return field.Fail(path, "%s is not supported in this version, and without it the policy would mean something else: remove it or keep the rule in Kyverno",
		what)
}

// Join puts two paths together.
func Join(path, below string) string {
	switch {
	case path == "":
		return below
	case below == "" || below[0] == '[':
		return path + below
	}
	return path + "." + below
}

// Under puts a path before those of the errors about fields that err is made of.
func Under(path string, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, one := range joined.Unwrap() {
			errs = append(errs, Under(path, one))
		}
		return errors.Join(errs...)
	}
	if f, ok := errors.AsType[*field.Error](err); ok && errors.Is(f, err) { // err is it, and not what wraps it
		return &field.Error{Path: Join(path, f.Path), Err: f.Err}
	}
	return field.Below(path, err)
}

// Decode reads JSON into a struct. Unknown or repeated fields, and those that differ in case, are
// errors with their path.
func Decode(data []byte, into any, path string) error {
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return field.Below(path, Readable(err))
	}
	var errs []error
	for _, problem := range strict {
		errs = append(errs, fieldProblem(problem.Error(), path, reflect.TypeOf(into)))
	}
	return errors.Join(errs...)
}

// fieldProblem extracts the path from a message such as: unknown field "a.b", and suggests the
// most similar field.
func fieldProblem(message, path string, of reflect.Type) error {
	what, quoted, ok := strings.Cut(message, ` "`)
	if !ok {
		return field.Fail(path, "%s", message)
	}
	name := strings.TrimSuffix(quoted, `"`)
	if right := meant(name, of); right != "" && strings.HasPrefix(what, "unknown") {
		what += ": did you mean " + right + "?"
	}
	return field.Fail(Join(path, name), "%s", what)
}

// Readable removes the Go types from a message of encoding/json.
func Readable(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		// Embedded parts have no name in the document.
		name := strings.TrimPrefix(wrong.Field, "Document.")
		return fmt.Errorf("%s: want %s, found %s", name, wanted(wrong.Type.String()), wrong.Value)
	}
	if m := regexp.MustCompile(`cannot unmarshal (\w+) into Go struct field \w+\.(\S+) of type (\S+)`).FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%s: want %s, found %s", m[2], wanted(m[3]), m[1])
	}
	return err
}

func wanted(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case strings.Contains(goType, "int"):
		return "a whole number"
	case strings.HasSuffix(goType, "bool"):
		return "true or false"
	case goType == "string":
		return "a string"
	}
	return "an object"
}

// Plain turns a typed value into JSON as the rule languages read it.
func Plain(value any) (any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	return out, json.Unmarshal(data, &out)
}
