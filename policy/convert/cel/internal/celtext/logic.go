package celtext

import "strings"

// Any writes that a text is one of some, which may have wildcards.
func Any(value string, patterns []string) string {
	var plain, alternatives []string
	for _, pattern := range patterns {
		if strings.ContainsAny(pattern, "*?") {
			alternatives = append(alternatives, Matches(pattern, value))
			continue
		}
		plain = append(plain, String(pattern))
	}
	switch {
	case len(plain) == 1:
		alternatives = append([]string{value + " == " + plain[0]}, alternatives...)
	case len(plain) > 1:
		alternatives = append([]string{value + " in [" + strings.Join(plain, ", ") + "]"}, alternatives...)
	}
	return strings.Join(alternatives, " || ")
}

// And writes that all expressions hold.
func And(expressions []string) string { return Join(expressions, " && ") }

// Join joins expressions by && or ||, with space around it.
func Join(expressions []string, operator string) string {
	other := "||"
	if strings.TrimSpace(operator) == other {
		other = "&&"
	}
	each := make([]string, len(expressions))
	for i, e := range expressions {
		each[i] = e
		if len(expressions) > 1 && (Has(e, other) || Has(e, " ? ")) {
			each[i] = "(" + e + ")"
		}
	}
	return strings.Join(each, operator)
}

// Operand writes an expression as the operand of any operator.
func Operand(expression string) string {
	if Has(expression, " ") {
		return "(" + expression + ")"
	}
	return expression
}

// Not writes that an expression does not hold.
func Not(expression string) string { return "!" + Operand(expression) }

// Has reports whether an expression has an operator outside of brackets and literals.
func Has(expression, operator string) bool {
	depth, quote := 0, byte(0)
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth == 0 && strings.HasPrefix(expression[i:], operator):
			return true
		}
	}
	return false
}
