package yamltemplate

import (
	"errors"
	"strings"
)

var errReference = errors.New(`$(x) refers to a field of the policy, and patches have no such references: write \$(x) for plain text`)

// Unescape replaces each `\$(x)` by $(x). An unescaped $(x) is refused: Kyverno treats it
// as a reference to a field of the policy, and fails.
func Unescape(s string) (string, error) {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(s, "$(")
		word, _, _ := strings.Cut(after, " ")
		isReference := strings.LastIndex(word, ")") > 0
		plain, escaped := strings.CutSuffix(before, `\`)
		switch {
		case !found:
			out.WriteString(before)
			return out.String(), nil
		case isReference && !escaped:
			return "", errReference
		case isReference:
			before = plain
		}
		out.WriteString(before + "$(")
		s = after
	}
}
