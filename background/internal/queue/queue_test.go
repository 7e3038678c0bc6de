package queue

import (
	"strconv"
	"strings"
	"testing"
	"time"

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
		q := New()
		for i := range c.count {
			name := strconv.Itoa(i)
			if c.again {
				name = "one"
			}
			q.Add(Key{Kind: "ConfigMap", Namespace: "team", Name: name}, Work{Trigger: record.Trigger{Name: name}, Object: c.object, Cause: Came})
		}
		held, waits := 0, len(q.waiting)
		for range waits {
			if _, w, ok := q.Next(t.Context()); !ok || w.Cause != Came {
				t.Fatalf("%s: %+v", c.reason, w)
			} else if w.Object != nil {
				held++
			}
		}
		if held < c.from || held > c.to || q.held != 0 {
			t.Errorf("%s: %d of %d wait with their content, and %d bytes are not free again", c.reason, held, waits, q.held)
		}
	}
}

// TestHasDeletions: a deleted trigger is known in each state of its work, and other work is none.
func TestHasDeletions(t *testing.T) {
	at := func(uid string) Key { return Key{Kind: "Pod", Name: "a", Deleted: uid} }
	for _, uid := range []string{"", "1"} {
		want := uid != ""
		w := Work{Trigger: record.Trigger{APIVersion: "v1"}, Object: map[string]any{}, Cause: Came}
		if want {
			w.Cause = Deleted
		}
		q := New()
		for _, step := range []struct {
			reason string
			do     func()
			want   bool
		}{
			{"nothing", func() {}, false},
			{"queued", func() { q.Add(at(uid), w) }, want},
			{"in Work", func() { q.Next(t.Context()) }, want},
			{"waiting for a retry", func() { q.AddLater(at(uid), w, time.Hour); q.Done(at(uid)) }, want},
		} {
			step.do()
			if q.HasDeletions() != step.want {
				t.Errorf("UID %q, %s: %t, want %t", uid, step.reason, q.HasDeletions(), step.want)
			}
		}
	}
}
