package condition

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// spelling counts the wildcards that the policy's own text contributes to a value. Any others
// come from the data: from a label, an annotation or an attestation. The author of the data must
// not write patterns.
type spelling struct {
	own   int
	items []int // the same for each item, where a list is written out
	dash  bool  // a dash is spelled out, so that the value may be a range
	plain bool  // all of the value is the policy's
}

// spellingOf reads a value as the policy writes it. One that cannot be compiled
// spells nothing, and is refused elsewhere.
func spellingOf(engine *jmespath.Engine, source any) spelling {
	var s spelling
	template, err := variable.Compile(engine, source)
	if err != nil {
		return s
	}
	s.plain = template.Plain()
	items, ok := source.([]any)
	if !ok {
		written := spelledOut(template, source)
		s.own, s.dash = wildcards(written), strings.Contains(written, "-")
		return s
	}
	for _, item := range items {
		own := 0
		if template, err := variable.Compile(engine, item); err == nil {
			own = wildcards(spelledOut(template, item))
		}
		s.items = append(s.items, own)
	}
	return s
}

// spelledOut returns the text outside of variables; empty for a list or an object with variables.
func spelledOut(t *variable.Template, source any) string {
	if t.Plain() {
		return plain(source)
	}
	return t.Outside()
}

func wildcards(s string) int { return strings.Count(s, "*") + strings.Count(s, "?") }

// item returns how many wildcards of a list's item are the policy's own.
func (s spelling) item(i int) int {
	if i < len(s.items) {
		return s.items[i]
	}
	return 0
}
