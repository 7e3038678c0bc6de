package kyverno

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

// unscanned returns why scans of existing objects omit the policy; empty if they include it.
// Kyverno refuses a policy that reads the requester unless background is false: the requester of
// an existing object is unknown.
func (s *spec) unscanned() string {
	if s.Background != nil && !*s.Background {
		return "spec.background is false"
	}
	for _, raw := range s.Rules {
		var doc struct {
			Name    string          `json:"name"`
			Match   match.Document  `json:"match"`
			Exclude *match.Document `json:"exclude"`
		}
		var all any
		// The compiler of the rule reports unreadable fields.
		_ = json.Unmarshal(raw, &doc)
		_ = json.Unmarshal(raw, &all)
		if doc.Match.SelectsUsers() || doc.Exclude != nil && doc.Exclude.SelectsUsers() || readsUser(all) {
			return "rule " + doc.Name + " reads the requester, which is unknown for existing objects; Kyverno requires spec.background: false for it"
		}
	}
	return ""
}

// readsUser searches every text, since any may contain a variable.
func readsUser(value any) bool {
	switch v := value.(type) {
	case string:
		return namesUser(v)
	case []any:
		return slices.ContainsFunc(v, readsUser)
	case map[string]any:
		for key, member := range v {
			if namesUser(key) || readsUser(member) {
				return true
			}
		}
	}
	return false
}

// namesUser reports whether a text reads the requester: by the variables of a service account, by
// a member of the request, or by the request as a whole. A text without braces may still be an
// expression, or plain text without variables.
func namesUser(text string) bool {
	braces := strings.Contains(text, "{{")
	if braces && (named(text, "serviceAccountName", nil) || named(text, "serviceAccountNamespace", nil)) {
		return true
	}
	return named(text, "request", func(after string) bool {
		member, isMember := strings.CutPrefix(strings.TrimSpace(after), ".")
		if !isMember {
			return braces
		}
		member = strings.TrimLeft(member, ` "\`)
		return slices.ContainsFunc([]string{"userInfo", "roles", "clusterRoles"}, func(name string) bool { return strings.HasPrefix(member, name) })
	})
}

// named reports whether a name stands in a text by itself, no member of anything, and
// what follows is as wanted.
func named(text, name string, wanted func(after string) bool) bool {
	for {
		i := strings.Index(text, name)
		if i < 0 {
			return false
		}
		before, after := text[:i], text[i+len(name):]
		text = after
		if before != "" && (isNamePart(before[len(before)-1]) || strings.HasSuffix(strings.TrimRight(before, ` "\`), ".")) || after != "" && isNamePart(after[0]) {
			continue
		}
		if wanted == nil || wanted(after) {
			return true
		}
	}
}

func isNamePart(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
