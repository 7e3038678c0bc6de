package background

import (
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
)

// TestPendingTriggersAreBounded: pending triggers hold a bounded size together, however large
// their authors make them; the others wait by name, and released ones free their size.
func TestPendingTriggersAreBounded(t *testing.T) {
	large := func(bytes int) map[string]any {
		return map[string]any{"data": map[string]any{"a": strings.Repeat("x", bytes)}}
	}
	many := func(keys int) map[string]any {
		data := map[string]any{}
		for i := range keys {
			data[strconv.Itoa(i)] = ""
		}
		return map[string]any{"data": data}
	}
	for _, c := range []struct {
		reason   string
		object   map[string]any
		count    int
		from, to int // how many wait with their content
		again    bool
	}{
		{"small ones", large(100), 5000, 5000, 5000, false},
		{"long texts", large(1 << 20), 100, 15, 16, false},
		{"many values", many(10_000), 100, 15, 25, false},
		{"the same again and again", large(1 << 20), 100, 1, 1, true},
	} {
		q := newQueue()
		for i := range c.count {
			name := strconv.Itoa(i)
			if c.again {
				name = "one"
			}
			q.add(key{kind: "ConfigMap", namespace: "team", name: name}, work{trigger: record.Trigger{Name: name}, object: c.object, cause: came})
		}
		held, waits := 0, len(q.waiting)
		for range waits {
			if _, w, ok := q.next(t.Context()); !ok || w.cause != came {
				t.Fatalf("%s: %+v", c.reason, w)
			} else if w.object != nil {
				held++
			}
		}
		if held < c.from || held > c.to || q.held != 0 {
			t.Errorf("%s: %d of %d wait with their content, and %d bytes are not free again", c.reason, held, waits, q.held)
		}
	}
}
