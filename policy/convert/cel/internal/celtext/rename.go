package celtext

import "strings"

// Rename replaces a variable in an expression by another expression that can be followed by a dot. Texts, comments, and
// members and functions of that name stay.
func Rename(expression, name, with string) string {
	var out strings.Builder
	for i := 0; i < len(expression); {
		length := literalLength(expression[i:])
		if length == 0 {
			length = identifierLength(expression[i:])
		}
		if length == 0 {
			length = 1
		}
		token := expression[i : i+length]
		if token == name && !isMember(expression[:i]) && !strings.HasPrefix(strings.TrimSpace(expression[i+length:]), "(") {
			token = with
		}
		out.WriteString(token)
		i += length
	}
	return out.String()
}

// isMember reports whether a name behind a text is that of a member: behind a dot, or a dot and a question mark.
func isMember(before string) bool {
	before = strings.TrimSpace(before)
	return strings.HasSuffix(before, ".") || strings.HasSuffix(before, ".?")
}

func identifierLength(text string) int {
	isOf := func(c byte) bool {
		return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	length := 0
	for length < len(text) && isOf(text[length]) {
		length++
	}
	return length
}

// literalLength is the length of a text or a comment at the start of an expression; 0 for none. The letters before the
// quotes of a raw text and of bytes are in it.
func literalLength(text string) int {
	if strings.HasPrefix(text, "//") {
		before, _, _ := strings.Cut(text, "\n")
		return len(before)
	}
	rest := strings.TrimLeft(text, "rRbB")
	letters := len(text) - len(rest)
	if letters > 2 || rest == "" || rest[0] != '\'' && rest[0] != '"' {
		return 0
	}
	quote := rest[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(rest, triple) {
		quote = triple
	}
	isRaw := strings.ContainsAny(text[:letters], "rR")
	for i := len(quote); i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && !isRaw:
			i++
		case strings.HasPrefix(rest[i:], quote):
			return letters + i + len(quote)
		}
	}
	return len(text)
}
