package celtext

import "strings"

// width is how long a line of an expression may be before it is broken.
const width = 100

// Lines breaks a long expression into lines, at the operators and the macros outside of all others first.
func Lines(expression string) string { return lines(expression, 0) }

func lines(text string, indent int) string {
	if len(text)+indent <= width || strings.Contains(text, "\n") {
		return text
	}
	margin := "\n" + strings.Repeat(" ", indent)
	for _, operator := range []string{" ? ", " || ", " && "} {
		parts := parted(text, operator)
		if len(parts) == 1 {
			continue
		}
		if operator == " ? " {
			return lines(parts[0], indent) + " ?" + margin + branches(strings.Join(parts[1:], operator), indent, margin)
		}
		for i, one := range parts {
			parts[i] = lines(one, indent)
		}
		return strings.Join(parts, operator[:3]+margin)
	}
	return inside(text, indent)
}

// branches breaks the two sides of a choice.
func branches(text string, indent int, margin string) string {
	sides := parted(text, " : ")
	for i, one := range sides {
		sides[i] = lines(one, indent)
	}
	return strings.Join(sides, " :"+margin)
}

// inside breaks the body of a macro at the end of an expression, as in list.all(element, body), or of parentheses.
func inside(text string, indent int) string {
	if !strings.HasSuffix(text, ")") {
		return text
	}
	open := -1
	scan(text, func(i, depth int) {
		if text[i] == '(' && depth == 0 {
			open = i
		}
	})
	if open < 0 {
		return text
	}
	head, body := text[:open+1], text[open+1:len(text)-1]
	inner := "\n" + strings.Repeat(" ", indent+2)
	macro := strings.HasSuffix(head, ".all(") || strings.HasSuffix(head, ".exists(") || strings.HasSuffix(head, ".map(") || strings.HasSuffix(head, ".filter(")
	name, rest, ok := strings.Cut(body, ", ")
	switch {
	case macro && ok && IsField(name) && len(parted(body, ", ")) == 2:
		return head + name + "," + inner + lines(rest, indent+2) + ")"
	case head == "(" || head == "!(":
		return head + inner + lines(body, indent+2) + ")"
	}
	return text
}

// parted separates an expression at an operator outside of parentheses and texts.
func parted(text, operator string) []string {
	var parts []string
	start := 0
	scan(text, func(i, depth int) {
		if depth == 0 && i >= start && strings.HasPrefix(text[i:], operator) {
			parts, start = append(parts, text[start:i]), i+len(operator)
		}
	})
	return append(parts, text[start:])
}

// scan calls visit for each byte outside of texts, with the number of parentheses around it.
func scan(text string, visit func(i, depth int)) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\'', '"':
			raw := i > 0 && text[i-1] == 'r' && (i == 1 || strings.IndexByte(" ([,!", text[i-2]) >= 0)
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' && !raw {
					i++
				}
			}
			continue
		case ')', ']', '}':
			depth--
		}
		visit(i, depth)
		if strings.IndexByte("([{", text[i]) >= 0 {
			depth++
		}
	}
}
