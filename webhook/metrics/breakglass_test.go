package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestManyOpenNamespaces: all are counted, and those that end first have series of their
// own.
func TestManyOpenNamespaces(t *testing.T) {
	var list []OpenNamespace
	for i := range 3 * maxOpen {
		list = append(list, OpenNamespace{Name: fmt.Sprintf("n%05d", i), Until: time.Unix(int64(2000000000-i), 0)})
	}
	m := New(Build{})
	if err := m.Watch(Readings{OpenNamespaces: func() []OpenNamespace { return list }}); err != nil {
		t.Fatal(err)
	}
	text := scrape(t, m)
	if n := strings.Count(text, "\nquaymaster_break_glass_expiry_timestamp_seconds{"); n != maxOpen {
		t.Errorf("%d series, want %d", n, maxOpen)
	}
	if !strings.Contains(text, fmt.Sprintf("\nquaymaster_break_glass_open %d\n", 3*maxOpen)) {
		t.Error("not all are counted")
	}
	if !strings.Contains(text, fmt.Sprintf(`"n%05d"`, 3*maxOpen-1)) || strings.Contains(text, `"n00000"`) {
		t.Error("those that end last are shown, and those that end first are not")
	}
}
