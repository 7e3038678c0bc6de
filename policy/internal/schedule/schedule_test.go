package schedule_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/internal/schedule"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestNext lists the times of schedules.
func TestNext(t *testing.T) {
	const start = "2026-03-01T00:00:00Z"
	for _, c := range []struct{ reason, text, after, want string }{
		{"each minute", "* * * * *", start, "2026-03-01T00:01:00Z 2026-03-01T00:02:00Z"},
		{"steps", "*/20 * * * *", start, "2026-03-01T00:20:00Z 2026-03-01T00:40:00Z"},
		{"an hour", "0 3 * * *", start, "2026-03-01T03:00:00Z 2026-03-02T03:00:00Z"},
		{"an exact time is past", "0 0 * * *", start, "2026-03-02T00:00:00Z"},
		{"part of a second", "0 0 * * *", "2026-02-28T23:59:59.5Z", "2026-03-01T00:00:00Z"},
		{"a name", "@daily", start, "2026-03-02T00:00:00Z"},
		{"a day of the week", "0 12 * * MON", start, "2026-03-02T12:00:00Z"},
		{"a leap day", "0 0 29 2 *", start, "2028-02-29T00:00:00Z"},
		{"the last day of a month", "0 0 L * *", start, "2026-03-31T00:00:00Z 2026-04-30T00:00:00Z"},
		{"a year", "0 0 1 1 * 2030", start, "2030-01-01T00:00:00Z never"},
		{"seconds", "30 0 0 * * * *", start, "2026-03-01T00:00:30Z 2026-03-02T00:00:30Z"},
		{"a zone", "TZ=Europe/Berlin 0 3 * * *", start, "2026-03-01T02:00:00Z"},
		{"a zone, as another program has it", "CRON_TZ=Asia/Kolkata 0 3 * * *", start, "2026-03-01T21:30:00Z"},
		{"a reading that the clock skips", "TZ=Europe/Berlin 30 2 * * *", "2026-03-29T00:00:00Z", "2026-03-29T01:30:00Z 2026-03-30T00:30:00Z"},
		{"the other side of the change", "TZ=Europe/Berlin 0 * * * *", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z 2026-03-29T02:00:00Z"},
		{"a reading that the clock has twice", "TZ=Europe/Berlin 30 2 * * *", "2026-10-24T22:00:00Z", "2026-10-25T01:30:00Z 2026-10-26T01:30:00Z"},
		{"after the first of them", "TZ=Europe/Berlin 30 2 * * *", "2026-10-25T00:40:00Z", "2026-10-25T01:30:00Z 2026-10-26T01:30:00Z"},
		{"in the hour that comes twice", "TZ=Europe/Berlin */30 * * * *", "2026-10-25T00:10:00Z", "2026-10-25T01:00:00Z 2026-10-25T01:30:00Z 2026-10-25T02:00:00Z"},
		{"each second of it", "TZ=Europe/Berlin * * * * * * *", "2026-10-25T00:59:59Z", "2026-10-25T01:00:00Z 2026-10-25T01:00:01Z"},
	} {
		s, err := schedule.Parse(c.text, at(t, start))
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		next := at(t, c.after)
		for _, want := range strings.Fields(c.want) {
			next = s.Next(next)
			got := "never"
			if !next.IsZero() {
				got = next.Format(time.RFC3339)
			}
			if got != want {
				t.Errorf("%s: %s, want %s", c.reason, got, want)
			}
		}
		if s.String() != c.text {
			t.Errorf("%s: %s", c.reason, s)
		}
	}
}

// TestParse refuses texts without a schedule, and schedules without a time.
func TestParse(t *testing.T) {
	now := at(t, "2026-03-01T00:00:00Z")
	for _, c := range []struct{ reason, text, want string }{
		{"nothing", "", "is empty"},
		{"blanks", "  ", "is empty"},
		{"four fields", "* * * *", "missing field"},
		{"eight fields", "0 0 0 * * * * 1", "too many fields"},
		{"no minute", "60 * * * *", "is no schedule"},
		{"no day", "a b c d e", "is no schedule"},
		{"a zone alone", "TZ=Europe/Berlin", "is no schedule"},
		{"a zone and nothing", "TZ=Europe/Berlin ", "is no schedule"},
		{"no zone", "TZ= 0 3 * * *", "the time zone"},
		{"an unknown zone", "TZ=Europe/Nowhere 0 3 * * *", "the time zone \"Europe/Nowhere\" is unknown"},
		{"a file", "TZ=../../etc/passwd 0 3 * * *", "is unknown"},
		{"the machine's zone", "TZ=Local 0 3 * * *", "the time zone \"Local\""},
		{"no such date", "0 0 30 2 *", "has no time after 2026-03-01"},
		{"a year that is over", "0 0 1 1 * 2020", "has no time after"},
		{"an hour that ends before it begins", "0 22-4/2 * * *", "has no time after"},
		{"a minute that ends before it begins", "20-5/2 * * * *", "has no time after"},
		{"an interval", "@every 1h", "missing field"},
		{"a long text", strings.Repeat("1,", 300) + "1 * * * *", "want at most 512"},
	} {
		if s, err := schedule.Parse(c.text, now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", c.reason, s, err)
		}
	}
}

// TestConcurrent: the library's expressions are written to by each computation.
func TestConcurrent(t *testing.T) {
	now := at(t, "2026-03-01T00:00:00Z")
	s, err := schedule.Parse("0 0 31 * *", now)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			next := now
			for range 50 {
				next = s.Next(next)
				if next.Day() != 31 {
					t.Error(next)
				}
			}
		})
	}
	all.Wait()
}

// FuzzParse: a schedule that is read has times that only grow.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"* * * * *", "TZ=Europe/Berlin 30 2 * * *", "0 0 L * *", "0 0 15W * 5#3 2027-2030/2", "*/0 1-60 , ? *", "@hourly"} {
		f.Add(text, int64(1772323200))
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		const century = 100 * 365 * 24 * 60 * 60
		now := time.Unix(max(seconds, -seconds, 0)%century, 0)
		s, err := schedule.Parse(text, now)
		if err != nil {
			return
		}
		for range 5 {
			next := s.Next(now)
			if next.IsZero() {
				return
			}
			if !next.After(now) {
				t.Fatalf("%q: %s after %s", text, next, now)
			}
			now = next
		}
	})
}

func ExampleParse() {
	s, err := schedule.Parse("TZ=Europe/Berlin 0 3 * * *", time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Next(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)))
	// Output: 2026-03-02 02:00:00 +0000 UTC
}
