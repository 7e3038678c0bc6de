package queue_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/report/inventory/internal/queue"
)

// TestQueue returns the oldest key above the bound, until it is dropped.
func TestQueue(t *testing.T) {
	q := queue.New[string](2)
	for _, row := range []struct {
		reason, add, drop string
		evict             string // empty for none
	}{
		{"the first", "a", "", ""},
		{"the same again", "a", "", ""},
		{"the bound", "b", "", ""},
		{"above the bound", "c", "a", "a"},
		{"a dropped key makes room", "b", "", ""},
		{"it arrives anew, as the latest", "a", "b", "b"},
		{"an unknown key is dropped", "c", "x", ""},
	} {
		oldest, full := q.Add(row.add)
		if oldest != row.evict || full != (row.evict != "") {
			t.Errorf("%s: %q, %t, want %q", row.reason, oldest, full, row.evict)
		}
		if row.drop != "" {
			q.Drop(row.drop)
		}
	}
}
