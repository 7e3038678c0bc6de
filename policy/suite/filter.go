package suite

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/suite/document"
)

// Filter chooses checks by patterns with * and ?; empty ones choose all.
type Filter struct{ Policy, Rule, Resource string }

// ParseFilter reads policy=X,rule=Y,resource=Z, in any order and any of them.
func ParseFilter(text string) (Filter, error) {
	var f Filter
	if strings.TrimSpace(text) == "" {
		return f, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		value = strings.TrimSpace(value)
		if !ok || value == "" || strings.Contains(value, "=") {
			return f, fmt.Errorf("%q: want key=pattern", strings.TrimSpace(part))
		}
		if value == "*" {
			value = "" // a pattern that matches all skips nothing, so no skipped checks are reported
		}
		key = strings.TrimSpace(key)
		switch key {
		case "policy":
			f.Policy = value
		case "rule":
			f.Rule = value
		case "resource":
			f.Resource = value
		default:
			return f, fmt.Errorf("%q: want policy, rule or resource", key)
		}
	}
	return f, nil
}

func (f Filter) row(r *document.Row) bool {
	return matches(f.Policy, r.Policy) && (r.Rule == "" || matches(f.Rule, r.Rule))
}

func (f Filter) resource(name string) bool { return matches(f.Resource, name) }

func matches(pattern, text string) bool { return pattern == "" || wildcard.Match(pattern, text) }
