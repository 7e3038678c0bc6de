package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// pointer is a JSON pointer (RFC 6901), built token by token.
type pointer string

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func (p pointer) child(token string) pointer { return p + pointer("/"+escaper.Replace(token)) }

func (p pointer) index(i int) pointer { return p + pointer("/"+strconv.Itoa(i)) }

// parsePointer returns the tokens of a JSON pointer.
func parsePointer(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	if !strings.HasPrefix(s, "/") {
		return nil, fmt.Errorf("JSON pointer %q: it must begin with /", s)
	}
	tokens := strings.Split(s[1:], "/")
	for i, token := range tokens {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(token), "~") {
			return nil, fmt.Errorf("JSON pointer %q: ~ must be written ~0, and / inside a name ~1", s)
		}
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return tokens, nil
}

// position reads a list index: digits without a leading zero.
func position(token string, length int) (int, bool) {
	i, err := strconv.Atoi(token)
	if err != nil || strconv.Itoa(i) != token || i < 0 || i >= length {
		return 0, false
	}
	return i, true
}
