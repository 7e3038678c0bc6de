package document

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/quaymaster/quaymaster/internal/fieldname"
	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/internal/strictjson"
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
// errors with their path. For an unknown field it suggests the most similar one.
func Decode(data []byte, into any, path string) error {
	problems, err := strictjson.Decode(data, into)
	if err != nil {
		return field.Below(path, field.Readable(err))
	}
	var errs []error
	for _, problem := range problems {
		what := problem.What
		if strings.HasPrefix(what, "unknown") {
			what += spelling.DidYouMean(fieldname.Nearest(problem.Path, reflect.TypeOf(into)))
		}
		errs = append(errs, field.Fail(Join(path, problem.Path), "%s", what))
	}
	return errors.Join(errs...)
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
