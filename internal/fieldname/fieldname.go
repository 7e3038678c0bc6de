// Package fieldname finds the field of a struct, by its name in JSON (RFC 8259), that a misspelt one
// was meant to be.
package fieldname

import (
	"reflect"
	"strings"

	"github.com/quaymaster/quaymaster/internal/spelling"
)

// Nearest returns the most similar field to the unknown one at the end of a path, such as
// rules[0].resources.kind, in a struct or a pointer to one; empty if none is similar.
func Nearest(path string, of reflect.Type) string {
	steps := strings.Split(path, ".")
	for _, step := range steps[:len(steps)-1] {
		name, _, _ := strings.Cut(step, "[")
		next, ok := fieldsOf(of)[name]
		if !ok {
			return ""
		}
		of = next
	}
	var names []string
	for name := range fieldsOf(of) {
		names = append(names, name)
	}
	return spelling.Nearest(steps[len(steps)-1], names)
}

// fieldsOf returns the fields of a struct by their names in JSON; those of an
// embedded one are its own.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	fields := map[string]reflect.Type{}
	if of.Kind() != reflect.Struct {
		return fields
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			for name, inner := range fieldsOf(field.Type) {
				fields[name] = inner
			}
			continue
		}
		fields[name] = field.Type
	}
	return fields
}
