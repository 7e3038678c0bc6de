package document

import (
	"reflect"
	"strings"
)

// Nearest returns the most similar name to a misspelt one, or "".
func Nearest(name string, names []string) string {
	best, closest := "", min(2, len(name)/3)+1
	for _, candidate := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < closest {
			best, closest = candidate, d
		}
	}
	return best
}

// distance is how many letters must be put in, left out, changed or swapped with
// their neighbour to make one text of the other; texts too long to be a field are
// far from everything.
func distance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return longest
	}
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// meant returns the most similar field to the unknown one at the end of a path, such as
// resources.kind.
func meant(path string, of reflect.Type) string {
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
	return Nearest(steps[len(steps)-1], names)
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
