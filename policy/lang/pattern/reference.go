package pattern

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// document is the pattern that references look into.
type document struct{ root any }

// resolveReferences replaces references, `$(./../x)`, with the pattern's own value at that path.
// A pattern without any is returned unchanged.
func resolveReferences(root any) (any, error) {
	if !hasReferences(root) {
		return root, nil
	}
	return document{root}.resolve(root, nil, "")
}

func hasReferences(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, "$(")
	case []any:
		return slices.ContainsFunc(v, hasReferences)
	case map[string]any:
		for _, item := range v {
			if hasReferences(item) {
				return true
			}
		}
	}
	return false
}

// resolve returns a copy of value, which is at steps, the names without their anchors.
func (d document) resolve(value any, steps []string, path string) (any, error) {
	steps = slices.Clip(steps)
	switch v := value.(type) {
	case string:
		s, err := d.fill(v, steps)
		if err != nil {
			return nil, compileError(path, err)
		}
		return s, nil
	case []any:
		result := make([]any, len(v))
		for i, item := range v {
			index := strconv.Itoa(i)
			resolved, err := d.resolve(item, append(steps, index), path+"/"+index)
			if err != nil {
				return nil, err
			}
			result[i] = resolved
		}
		return result, nil
	case map[string]any:
		result := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			_, name := parseAnchor(key)
			resolved, err := d.resolve(v[key], append(steps, name), pointer(path, key))
			if err != nil {
				return nil, err
			}
			result[key] = resolved
		}
		return result, nil
	}
	return value, nil
}

// fill fills the references of one string in. One reaches from `$(` to the last
// `)` before a space; `\$(` is plain text.
func (d document) fill(s string, steps []string) (string, error) {
	var out strings.Builder
	for {
		start := strings.Index(s, "$(")
		if start < 0 {
			break
		}
		word, _, _ := strings.Cut(s[start:], " ")
		end := strings.LastIndexByte(word, ')')
		switch {
		case end < 0:
			out.WriteString(s[:start+2])
			s = s[start+2:]
			continue
		case start > 0 && s[start-1] == '\\':
			out.WriteString(s[:start-1] + word[:end+1])
		default:
			value, err := d.value(word[2:end], steps)
			if err != nil {
				return "", fmt.Errorf("the reference %s: %w", shorten(word[:end+1]), err)
			}
			out.WriteString(s[:start] + value)
		}
		s = s[start+end+1:]
		if out.Len() > maxText {
			return "", fmt.Errorf("a text with references %w of %d bytes", jmespath.ErrTooLarge, maxText)
		}
	}
	out.WriteString(s)
	return out.String(), nil
}

// value resolves a reference: an optional operator, and the value at the path.
func (d document) value(reference string, steps []string) (string, error) {
	path := strings.TrimLeft(reference, "<>=!")
	operator := reference[:len(reference)-len(path)]
	switch operator {
	case "", "<", ">", "<=", ">=", "!":
	default:
		return "", fmt.Errorf("no operator %s", operator)
	}
	if path == "" {
		return "", errors.New("want a path, such as ./../limits/memory")
	}
	found, ok := d.at(path, steps)
	if !ok {
		return "", errors.New("the pattern has nothing there")
	}
	switch v := found.(type) {
	case string:
		if strings.Contains(v, "$(") {
			return "", errors.New("a reference to a reference: write the value out")
		}
		return operator + v, nil
	case float64:
		if operator != "" {
			return operator + strconv.FormatFloat(v, 'f', -1, 64), nil
		}
	}
	return "", fmt.Errorf("want a string there, or a number after an operator, not %s", show(found))
}

// at follows a path, from the root or from steps.
func (d document) at(path string, steps []string) (any, bool) {
	if strings.HasPrefix(path, "/") {
		steps = nil
	}
	for step := range strings.SplitSeq(path, "/") {
		switch step {
		case "", ".":
		case "..":
			steps = steps[:max(0, len(steps)-1)]
		default:
			steps = append(slices.Clip(steps), strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
	}
	value := d.root
	for _, step := range steps {
		switch v := value.(type) {
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		case map[string]any:
			key, ok := keyOf(v, step)
			if !ok {
				return nil, false
			}
			value = v[key]
		default:
			return nil, false
		}
	}
	return value, true
}

// keyOf finds the key of a name, which may have an anchor around it.
func keyOf(members map[string]any, name string) (string, bool) {
	if _, ok := members[name]; ok {
		return name, true
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if _, n := parseAnchor(key); n == name {
			return key, true
		}
	}
	return "", false
}
