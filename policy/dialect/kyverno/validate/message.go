package validate

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// message is the failure message of a rule.
type message struct {
	rule     string
	source   string // as written, with references resolved
	template *variable.Template
}

func (c compiler) compileMessage(source string, raw, path string) (*message, error) {
	source = withReferences(source, raw)
	t, err := variable.Compile(c.context().Engine, source)
	return &message{rule: c.rule, source: source, template: t}, field.Below(path, err)
}

// text resolves the variables. An unresolved one does not fail the rule: the message then stays
// as written.
func (m *message) text(data variable.Context) string {
	value, err := m.template.Execute(data)
	if err != nil {
		return m.source
	}
	return jmespath.Text(value)
}

// sentence is text with a full stop.
func (m *message) sentence(data variable.Context) string {
	text := m.text(data)
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// failed is the message about a pattern that fails at a path.
func (m *message) failed(data variable.Context, path string) string {
	if m.source == "" {
		return fmt.Sprintf("validation error: rule %s failed at path %s", m.rule, path)
	}
	return fmt.Sprintf("validation error: %s rule %s failed at path %s", m.sentence(data), m.rule, path)
}

// failedAll is the message about patterns none of which holds.
func (m *message) failedAll(data variable.Context, failures string) string {
	if m.source == "" {
		return "validation error: " + failures
	}
	return "validation error: " + m.sentence(data) + " " + failures
}

// denied is the message about deny conditions, which may say something themselves.
func (m *message) denied(data variable.Context, own string) string {
	switch {
	case m.source == "" && own == "":
		return "validation error: rule " + m.rule + " failed"
	case m.source == "":
		return own
	case own == "":
		return m.text(data)
	}
	return m.text(data) + "; " + own
}

// withReferences resolves $(path), which names a value elsewhere in the rule: from its root, or
// relative to the message. Unresolved references stay unchanged.
func withReferences(source, raw string) string {
	if !strings.Contains(source, "$(") {
		return source
	}
	var rule any
	if json.Unmarshal([]byte(raw), &rule) != nil {
		return source // refused elsewhere
	}
	found := regexp.MustCompile(`\\?\$\([^ )]+\)`)
	return found.ReplaceAllStringFunc(source, func(reference string) string {
		if plain, escaped := strings.CutPrefix(reference, `\`); escaped {
			return plain
		}
		at := strings.TrimSuffix(strings.TrimPrefix(reference, "$("), ")")
		if !path.IsAbs(at) {
			at = path.Join("/validate/message", at)
		}
		value, ok := valueAt(rule, strings.Split(strings.TrimPrefix(at, "/"), "/"))
		if _, isText := value.(string); !ok || !isText && !scalar(value) {
			return reference
		}
		return jmespath.Text(value)
	})
}

func scalar(value any) bool {
	switch value.(type) {
	case bool, float64:
		return true
	}
	return false
}

// valueAt follows a path, in which anchors may be left out.
func valueAt(value any, steps []string) (any, bool) {
	if len(steps) == 0 {
		return value, true
	}
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if key == steps[0] || withoutAnchor(key) == steps[0] {
				return valueAt(member, steps[1:])
			}
		}
	case []any:
		if i, err := strconv.Atoi(steps[0]); err == nil && i >= 0 && i < len(v) {
			return valueAt(v[i], steps[1:])
		}
	}
	return nil, false
}

// withoutAnchor returns the name in an anchor such as =(name).
func withoutAnchor(key string) string {
	open := strings.IndexByte(key, '(')
	if open < 0 || open > 1 || !strings.HasSuffix(key, ")") {
		return key
	}
	return key[open+1 : len(key)-1]
}
