package ivp

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// maxLabel is the length of a DNS label.
const maxLabel = 63

// Label makes a DNS label of a text: lower case letters, digits and hyphens. One
// that is too long is cut, and a hash of the whole is added.
func Label(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case r == '*':
			b.WriteString("-any-")
		default:
			b.WriteByte('-')
		}
	}
	parts := slices.DeleteFunc(strings.Split(b.String(), "-"), func(part string) bool { return part == "" })
	short := strings.Join(parts, "-")
	if short == "" {
		short = "policy"
	}
	if len(short) > maxLabel {
		sum := sha256.Sum256([]byte(text))
		short = strings.TrimRight(short[:maxLabel-9], "-") + "-" + hex.EncodeToString(sum[:])[:8]
	}
	return short
}

// Unique adds a number to a name that is taken, and takes it.
func Unique(name string, taken map[string]bool) string {
	found := name
	for n := 2; taken[found]; n++ {
		suffix := "-" + strconv.Itoa(n)
		found = strings.TrimRight(name[:min(len(name), maxLabel-len(suffix))], "-") + suffix
	}
	taken[found] = true
	return found
}

// AttestorName makes a name that CEL reads after "attestors.", and that none of
// the others has.
func AttestorName(text string, taken map[string]bool) string {
	name := strings.ReplaceAll(Label(text), "-", "_")
	if name[0] >= '0' && name[0] <= '9' || slices.Contains(reserved(), name) {
		name = "by_" + name
	}
	found := name
	for n := 2; taken[found]; n++ {
		found = name + "_" + strconv.Itoa(n)
	}
	taken[found] = true
	return found
}

// reserved are the words that CEL keeps for itself (language definition, syntax).
func reserved() []string {
	return []string{
		"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
		"namespace", "null", "package", "return", "true", "var", "void", "while",
	}
}
