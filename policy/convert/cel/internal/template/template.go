// Package template separates the text and the variables, {{ expression }}, of a value in a policy of Kyverno ("Variables", 1.19).
package template

import "strings"

// Part is a piece of a text: as it is written, or an expression between {{ and }}.
type Part struct {
	Text       string
	Expression bool
}

// Split separates the variables of a text; \{{ is no variable. Ok is false where one is not closed.
func Split(text string) (parts []Part, ok bool) {
	var plain strings.Builder
	for text != "" {
		switch {
		case strings.HasPrefix(text, `\{{`):
			plain.WriteString("{{")
			text = text[3:]
		case strings.HasPrefix(text, "{{"):
			length, ok := variableLength(text)
			if !ok {
				return nil, false
			}
			if plain.Len() > 0 {
				parts = append(parts, Part{Text: plain.String()})
				plain.Reset()
			}
			parts = append(parts, Part{Text: text[2 : length-2], Expression: true})
			text = text[length:]
		default:
			plain.WriteByte(text[0])
			text = text[1:]
		}
	}
	if plain.Len() > 0 {
		parts = append(parts, Part{Text: plain.String()})
	}
	return parts, true
}

// variableLength is the length of the variable at the start of a text, with those inside it. Single braces are
// counted, so that they do not end it.
func variableLength(text string) (int, bool) {
	depth, braces := 0, 0
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "{{") && braces == 0:
			depth++
			i++
		case text[i] == '{':
			braces++
		case text[i] == '}' && braces > 0:
			braces--
		case strings.HasPrefix(text[i:], "}}"):
			depth--
			i++
			if depth == 0 {
				return i + 1, true
			}
		}
	}
	return 0, false
}

// EndsInLiteral reports whether a text ends within a literal of JSON that has just begun.
func EndsInLiteral(before []Part) bool {
	if len(before) == 0 {
		return false
	}
	count := 0
	for _, p := range before {
		if !p.Expression {
			count += strings.Count(p.Text, "`")
		}
	}
	last := before[len(before)-1]
	return count%2 == 1 && strings.HasSuffix(last.Text, "`")
}

// Whole returns the expression of a text that is one variable.
func Whole(text string) (string, bool) {
	parts, ok := Split(text)
	if !ok || len(parts) != 1 || !parts[0].Expression {
		return "", false
	}
	return parts[0].Text, true
}

// Has reports whether a text in a value has a variable in it.
func Has(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "{{")
	case []any:
		for _, one := range v {
			if Has(one) {
				return true
			}
		}
	case map[string]any:
		for key, one := range v {
			if Has(key) || Has(one) {
				return true
			}
		}
	}
	return false
}
