package kyverno

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

// FieldError says what is wrong with a policy, and where in the document.
type FieldError = field.Error

func fail(path, format string, args ...any) error {
	return &FieldError{Path: path, Err: fmt.Errorf(format, args...)}
}

// unsupported is the error for a field that this version cannot honour.
func unsupported(path, what string) error {
	return fail(path, "%s is not supported in this version, and without it the policy would mean something else: remove it or keep the rule in Kyverno", what)
}

// join puts two paths together.
func join(path, below string) string {
	switch {
	case path == "":
		return below
	case below == "" || below[0] == '[':
		return path + below
	}
	return path + "." + below
}

// decode reads JSON into a struct. Fields that the struct does not have, that
// are there twice or differ in case are errors with their path.
func decode(data []byte, into any, path string) error {
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return &FieldError{Path: path, Err: readable(err)}
	}
	var errs []error
	for _, problem := range strict {
		errs = append(errs, fieldProblem(problem.Error(), path, reflect.TypeOf(into)))
	}
	return errors.Join(errs...)
}

// fieldProblem takes the path out of a message such as: unknown field "a.b", and
// looks for what was meant.
func fieldProblem(message, path string, of reflect.Type) error {
	what, quoted, ok := strings.Cut(message, ` "`)
	if !ok {
		return fail(path, "%s", message)
	}
	field := strings.TrimSuffix(quoted, `"`)
	if name := meant(field, of); name != "" && strings.HasPrefix(what, "unknown") {
		what += ": did you mean " + name + "?"
	}
	return fail(join(path, field), "%s", what)
}

// readable takes the Go types out of a message of encoding/json.
func readable(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s: want %s, found %s", wrong.Field, wanted(wrong.Type.String()), wrong.Value)
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

// plain turns a typed value into JSON as the rule languages read it.
func plain(value any) (any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	return out, json.Unmarshal(data, &out)
}
