package patch

import (
	"maps"
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// currentName is how {{@}} is called in a context: {{"@"}} is a key of it, where @
// alone would be all of it.
const currentName = "@"

// nameCurrent puts the name for each {{@}} of a string, and reports whether there are
// any. An escaped one is text.
func nameCurrent(s string) (string, bool) {
	var out strings.Builder
	found := false
	for {
		before, after, ok := strings.Cut(s, "{{")
		out.WriteString(before)
		if !ok {
			return out.String(), found
		}
		rest, isCurrent := strings.CutPrefix(strings.TrimLeft(after, " "), currentName)
		rest, closed := strings.CutPrefix(strings.TrimLeft(rest, " "), "}}")
		if isCurrent && closed && !strings.HasSuffix(before, `\`) {
			out.WriteString(`{{"` + currentName + `"}}`)
			s, found = rest, true
			continue
		}
		out.WriteString("{{")
		s = after
	}
}

// current evaluates a leaf with {{@}}: the value that the object has there. Where it
// has none, the variable is not defined.
func (r *merging) current(template *variable.Template, s target) (any, error) {
	data := make(variable.Context, len(r.data)+1)
	maps.Copy(data, r.data)
	delete(data, currentName)
	if s.is {
		data[currentName] = s.value
	}
	return template.Execute(data)
}
