package merge

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutation"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	merging "github.com/quaymaster/quaymaster/policy/lang/cel/mutation"
)

// made is a part of a configuration.
type made struct {
	fields []field
	sample map[string]any
}

// field is a member of a part; of one that is optional the text is an optional value.
type field struct {
	name, text string
	isOptional bool
}

// data are members of which the members have no names of a type.
const data = " labels annotations matchLabels nodeSelector data stringData binaryData limits requests hard parameters "

// text writes the part as a value of a type, or as a map where its members have no names of one.
func (m made) text(object string) string {
	of := object[strings.LastIndex(object, ".")+1:]
	isMap := strings.Contains(data, " "+of+" ") || slices.ContainsFunc(m.fields, func(f field) bool { return !celtext.IsField(f.name) })
	var entries []string
	for _, f := range m.fields {
		name := f.name
		if isMap {
			name, f.text = celtext.String(name), m.uniform(f)
		}
		if f.isOptional {
			name = "?" + name
		}
		entries = append(entries, name+": "+f.text)
	}
	if isMap {
		return mutation.Inline("{", entries, "}")
	}
	return mutation.Inline(object+"{", entries, "}")
}

// uniform writes a value of a map: they are all of one type.
func (m made) uniform(f field) string {
	isConstant := func(f field) bool {
		return strings.HasPrefix(f.text, "'") && strings.Count(f.text, "'") == 2 && strings.HasSuffix(f.text, "'")
	}
	isText := func(f field) bool { _, is := m.sample[f.name].(string); return is }
	switch {
	case len(m.fields) == 1 || !slices.ContainsFunc(m.fields, func(f field) bool { return !isConstant(f) }):
		return f.text
	case slices.ContainsFunc(m.fields, func(f field) bool { return !isText(f) }):
		return "dyn(" + f.text + ")"
	case isConstant(f):
		return f.text
	}
	return "string(" + f.text + ")"
}

// check refuses a configuration that is not of the type of a kind, or would replace more than it says.
func (w *writer) check(kind string, m made) error {
	at := slices.IndexFunc(w.Kinds, func(k schema.GroupVersionKind) bool { return k.Kind == kind })
	err := w.Types.Check(w.Kinds[at], m.sample)
	var unfit *merging.FitError
	var atomic *merging.AtomicError
	switch {
	case errors.As(err, &unfit):
		return &source.Unsupported{Found: "a value that " + kind + " does not have: " + unfit.Error()}
	case errors.As(err, &atomic):
		for _, path := range atomic.Paths {
			if err := replacesAlike(m.sample, path); err != nil {
				return err
			}
		}
		w.out.ServerSide = true
		return nil
	}
	return err
}

// replacesAlike refuses an atomic object, of which a strategic merge keeps other members; one with a name
// alone has none.
func replacesAlike(sample any, path string) error {
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		switch at := sample.(type) {
		case map[string]any:
			sample = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(at) {
				return &source.Unsupported{Path: path, Found: "a field that is replaced as a whole"}
			}
			sample = at[i]
		}
	}
	switch v := sample.(type) {
	case []any:
		return nil
	case map[string]any:
		if _, named := v["name"]; named && len(v) == 1 && strings.HasPrefix(path, ".spec.imagePullSecrets") {
			return nil
		}
	}
	return &source.Unsupported{Path: strings.TrimPrefix(path, "."), Found: "an object in a list, which would be replaced as a whole"}
}
