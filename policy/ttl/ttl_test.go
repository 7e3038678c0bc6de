package ttl_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/ttl"
)

func created() time.Time { return time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC) }

func TestDeadline(t *testing.T) {
	for _, row := range []struct {
		reason, value string
		after         time.Duration
	}{
		{"minutes", "90m", 90 * time.Minute},
		{"two units", "2h30m", 150 * time.Minute},
		{"days, which Go has not", "5d", 5 * 24 * time.Hour},
		{"a word", "2days", 48 * time.Hour},
		{"capitals", "1D", 24 * time.Hour},
		{"a week and hours", "1w12h", (7*24 + 12) * time.Hour},
		{"a fraction of Go's", "1.5h", 90 * time.Minute},
		{"at once", "0s", 0},
		{"a date", "2030-02-01", 12 * time.Hour},
		{"a date with a time", "2030-01-31T121500Z", 15 * time.Minute},
		{"a date before the creation", "2030-01-01", -(30*24 + 12) * time.Hour},
	} {
		if at, err := ttl.Deadline(row.value, created()); err != nil || at.Sub(created()) != row.after {
			t.Errorf("%s: %q: %s, %v; want %s", row.reason, row.value, at.Sub(created()), err, row.after)
		}
	}
}

func TestDeadlineRefuses(t *testing.T) {
	for _, row := range []struct{ reason, value string }{
		{"empty", ""},
		{"a word", "never"},
		{"text before a duration, which Kyverno ignores", "never1d"},
		{"text after a duration, which Kyverno ignores", "1d-if-unused"},
		{"one unknown unit, which Kyverno ignores", "1d2fortnights"},
		{"months", "1month"},
		{"a number alone", "30"},
		{"negative", "-1h"},
		{"longer than a duration can be, which Kyverno wraps", "99999999999w"},
		{"a sum that is longer", "15000w15000w"},
		{"more digits than a number has", strings.Repeat("9", 40) + "d"},
		{"a day that does not exist", "2030-02-30"},
		{"another form of a time", "2030-01-31T12.15.00Z"},
		{"longer than a label", strings.Repeat("1", 63) + "s"},
	} {
		if at, err := ttl.Deadline(row.value, created()); err == nil {
			t.Errorf("%s: %q is %s", row.reason, row.value, at)
		}
	}
	if at, err := ttl.Deadline("1h", time.Time{}); err == nil {
		t.Errorf("without a time of creation: %s", at)
	}
	if _, err := ttl.Deadline("2030-02-01", time.Time{}); err != nil {
		t.Errorf("a date needs no time of creation: %v", err)
	}
}

func TestPropagation(t *testing.T) {
	for _, is := range []string{"", "Foreground", "Background", "Orphan"} {
		if got, err := ttl.Propagation(is); err != nil || got != is {
			t.Errorf("%q: %q, %v", is, got, err)
		}
	}
	for _, is := range []string{"orphan", "Foreground ", "None"} {
		if _, err := ttl.Propagation(is); err == nil {
			t.Errorf("%q is accepted", is)
		}
	}
}

// FuzzDeadline: a duration never ends before the creation, and never after the longest one.
func FuzzDeadline(f *testing.F) {
	for _, value := range []string{"1h", "5d", "2030-01-31", "2030-01-31T150405Z", "99999999999w", "1d2x", "-1h"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		at, err := ttl.Deadline(value, created())
		if err != nil || len(value) >= 4 && strings.Count(value, "-") == 2 {
			return
		}
		if lasts := at.Sub(created()); lasts < 0 {
			t.Errorf("%q: %s", value, lasts)
		}
	})
}

func ExampleDeadline() {
	at, err := ttl.Deadline("5d", time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC))
	fmt.Println(at.Format(time.RFC3339), err)
	_, err = ttl.Deadline("5days-or-so", time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC))
	fmt.Println(err != nil)
	// Output:
	// 2030-02-05T12:00:00Z <nil>
	// true
}
