package term

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
)

// Literal writes a value of JSON, as encoding/json decodes it.
func Literal(v any) string {
	switch v := v.(type) {
	case string:
		return celtext.String(v)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatInt(int64(v), 10)
		}
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	case []any:
		items := make([]string, len(v))
		for i, one := range v {
			items[i] = Literal(one)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var items []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			items = append(items, celtext.String(key)+": "+Literal(v[key]))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return "null"
}

// IsEmpty reports whether a value of JSON counts as false in JMESPath.
func IsEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// OtherThan returns a value of the type of a literal that differs from it.
func OtherThan(v any) (string, bool) {
	switch v := v.(type) {
	case bool:
		return Literal(!v), true
	case string:
		return "''", v != ""
	case float64:
		return "0", v != 0
	}
	return "", false
}
