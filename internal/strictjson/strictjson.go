// Package strictjson decodes JSON (RFC 8259) as documents are read here: an unknown field, one that
// is there twice, one that differs in case and one of another type is a problem with the path of
// the field, in the words of the document's author and not in those of Go.
package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	v2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	kjson "sigs.k8s.io/json"
)

// Problem is what is wrong with one field.
type Problem struct {
	// Path is dotted, with indices in brackets; empty means the document.
	Path string
	// What is the problem, such as: unknown field.
	What string
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Path == "" {
		return p.What
	}
	return p.Path + ": " + p.What
}

// Decode decodes data into a struct. The error is about data that is no JSON, or is the *Problem of
// a field of another type, after which the rest is not decoded. Of the other problems it returns
// all.
func Decode(data []byte, into any) ([]*Problem, error) {
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return nil, Readable(err)
	}
	problems := make([]*Problem, 0, len(strict))
	for _, one := range strict { // such as: unknown field "a.b"
		what, quoted, _ := strings.Cut(one.Error(), ` "`)
		problems = append(problems, &Problem{Path: strings.TrimSuffix(quoted, `"`), What: what})
	}
	return problems, nil
}

// Wanter is implemented by types that read their own JSON: Wanted is the value that they accept.
type Wanter interface{ Wanted() string }

// Unfit returns the error of a Wanter's UnmarshalJSON about a value. Decode knows its path.
func Unfit[T Wanter](value []byte) error {
	return &json.UnmarshalTypeError{Value: string(value), Type: reflect.TypeFor[T]()}
}

// Readable turns an error about the syntax or about a value of another type, of encoding/json or of
// github.com/go-json-experiment/json, into a *Problem, which has no type of Go and no words of a
// library. It returns any other error as it is.
func Readable(err error) error {
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &Problem{What: fmt.Sprintf("no JSON at byte %d", wrong.Offset)}
	}
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok && !errors.Is(err, jsontext.ErrDuplicateName) {
		return &Problem{What: fmt.Sprintf("no JSON at byte %d", wrong.ByteOffset)}
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		// Parts that are embedded have no name in the document.
		path := strings.TrimPrefix(wrong.Field, "Document.")
		return &Problem{Path: path, What: "want " + wanted(wrong.Type) + ", found " + wrong.Value}
	}
	if wrong, ok := errors.AsType[*v2.SemanticError](err); ok && wrong.GoType != nil {
		path := strings.Join(strings.Split(strings.TrimPrefix(string(wrong.JSONPointer), "/"), "/"), ".")
		if errors.Is(wrong.Err, v2.ErrUnknownName) {
			return &Problem{Path: path, What: "unknown field"}
		}
		if found, ok := kinds()[byte(wrong.JSONKind)]; ok {
			return &Problem{Path: path, What: "want " + wanted(wrong.GoType) + ", found " + found}
		}
	}
	return err
}

// kinds names the values of JSON by their kind, as encoding/json does.
func kinds() map[byte]string {
	return map[byte]string{'n': "null", 'f': "bool", 't': "bool", '"': "string", '0': "number", '{': "object", '[': "array"}
}

func wanted(of reflect.Type) string {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if wanter, ok := reflect.Zero(of).Interface().(Wanter); ok {
		return wanter.Wanted()
	}
	switch of.Kind() {
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	}
	return "an object"
}

// CheckKind refuses a document of another type before its fields are read, with the better error message.
func CheckKind(text []byte, apiVersion, kind string) error {
	var head *struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Readable(err)
	}
	if head == nil {
		return errors.New("the file is empty")
	}
	if head.APIVersion != apiVersion || head.Kind != kind {
		return fmt.Errorf("want apiVersion %s and kind %s, found %q and %q", apiVersion, kind, head.APIVersion, head.Kind)
	}
	return nil
}
