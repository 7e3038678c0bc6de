package generate

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// needsRequester reports whether a rule reads the requester of its trigger: in match and exclude,
// or in an expression. In doubt it does.
func needsRequester(r Rule, does any) (bool, error) {
	if r.Match.SelectsUsers() || r.Exclude != nil && r.Exclude.SelectsUsers() {
		return true, nil
	}
	plain, err := document.Plain([]any{r.Context, r.Preconditions, does})
	if err != nil {
		return false, field.Below(r.Path, err)
	}
	return readsRequester(plain), nil
}

// readsRequester searches every string, because any may contain an expression: in braces, or as
// the whole of a jmesPath or a list.
func readsRequester(value any) bool {
	switch v := value.(type) {
	case string:
		return namesRequester(v)
	case []any:
		for _, item := range v {
			if readsRequester(item) {
				return true
			}
		}
	case map[string]any:
		for key, item := range v {
			if namesRequester(key) || readsRequester(item) {
				return true
			}
		}
	}
	return false
}

// namesRequester reports whether a text may read the requester: by a variable of a service
// account, or by a member of the request that may hold user data.
func namesRequester(s string) bool {
	if strings.Contains(s, "serviceAccountName") {
		return true // and serviceAccountNamespace
	}
	for rest := s; ; {
		i := strings.Index(rest, "request")
		if i < 0 {
			return false
		}
		before, after := rest[:i], rest[i+len("request"):]
		rest = after
		if before != "" && isWord(before[len(before)-1]) || after != "" && isWord(after[0]) {
			continue // another word, such as requests
		}
		// Without braces it may be a text, and is none if a member follows.
		if !knownMember(after) && (strings.Contains(s, "{{") || readsMember(after)) {
			return true
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// readsMember reports whether a member follows.
func readsMember(after string) bool {
	return strings.HasPrefix(strings.TrimSpace(after), ".") || strings.HasPrefix(strings.TrimSpace(after), "[")
}

// knownMember reports whether the next member is one without user data.
func knownMember(after string) bool {
	member, ok := strings.CutPrefix(strings.TrimSpace(after), ".")
	if !ok {
		return false
	}
	member = strings.TrimLeft(member, ` "`)
	end := 0
	for end < len(member) && isWord(member[end]) {
		end++
	}
	switch member[:end] {
	case "object", "oldObject", "namespace", "name", "kind", "operation", "dryRun", "subResource":
		return true
	}
	return false
}

func containsVariable(s string) bool { return strings.Contains(s, "{{") }

func containsSlash(s string) bool { return strings.Contains(s, "/") }
