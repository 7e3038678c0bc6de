package condition

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/variable"
)

// spelling counts the wildcards that a policy itself spells out in a value. What
// is found beyond them has arrived with the data: in a label, an annotation or
// an attestation, whose author must not write patterns.
type spelling struct {
	own   int
	items []int // the same for each item, where a list is written out
}

// spellingOf reads a value as the policy writes it.
func spellingOf(engine *jmespath.Engine, source any) spelling {
	items, ok := source.([]any)
	if !ok {
		return spelling{own: ownWildcards(engine, source)}
	}
	var s spelling
	for _, item := range items {
		s.items = append(s.items, ownWildcards(engine, item))
	}
	return s
}

// ownWildcards counts those outside of variables; of a list or an object that
// has variables, none is the policy's.
func ownWildcards(engine *jmespath.Engine, source any) int {
	if s, ok := source.(string); ok {
		return wildcards(outside(s))
	}
	if template, err := variable.Compile(engine, source); err == nil && template.Plain() {
		return wildcards(plain(source))
	}
	return 0
}

// outside returns a string without its variables, whose end it finds as package
// variable does.
func outside(s string) string {
	var out strings.Builder
	depth := 0
	var braces []int // open single braces, by variable
	for s != "" {
		size := 1
		switch {
		case depth == 0 && strings.HasPrefix(s, `\{{`):
			size = 3
		case strings.HasPrefix(s, "{{"):
			depth, braces, size = depth+1, append(braces, 0), 2
		case depth > 0 && s[0] == '{':
			braces[depth-1]++
		case depth > 0 && s[0] == '}' && braces[depth-1] > 0:
			braces[depth-1]--
		case depth > 0 && strings.HasPrefix(s, "}}"):
			depth, braces, size = depth-1, braces[:depth-1], 2
		case depth == 0:
			out.WriteByte(s[0])
		}
		s = s[size:]
	}
	return out.String()
}

func wildcards(s string) int { return strings.Count(s, "*") + strings.Count(s, "?") }

// item returns how many wildcards of a list's item are the policy's own.
func (s spelling) item(i int) int {
	if i < len(s.items) {
		return s.items[i]
	}
	return 0
}
