package ratelimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]time.Duration{
		"5": 5 * time.Second, " 5 ": 5 * time.Second, "0": 0, "-5": 0, "soon": 0, "": 0, "1.5": 0,
		"99999999999999999999":                       0,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute,
		now.Add(-time.Hour).Format(http.TimeFormat):  0,
	}
	for value, want := range tests {
		if got := ratelimit.RetryAfter(value, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func TestRemaining(t *testing.T) {
	for text, want := range map[string]int64{"76;w=21600": 76, " 0 ": 0, "5;q;w=x": 5, "": -1, "-1": -1, "many": -1, "99999999999999999": -1} {
		got, ok := ratelimit.Remaining(headers("Ratelimit-Remaining", text))
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// FuzzHeaders: for any headers, admission is held back by a 429 alone, and
// never for longer than it may ask for.
func FuzzHeaders(f *testing.F) {
	f.Add(200, "76;w=21600", "100;w=21600", "60", "")
	f.Add(429, "0", "", "Wed, 21 Oct 2026 07:28:00 GMT", "99999")
	f.Fuzz(func(t *testing.T, status int, remaining, limit, after, reset string) {
		b := ratelimit.New()
		header := headers("Ratelimit-Remaining", remaining, "Ratelimit-Limit", limit, "Retry-After", after, "Ratelimit-Reset", reset)
		if err := ask(t, b, hub, false, status, header); err != nil {
			t.Fatal(err)
		}
		switch rest := b.Rest(hub); {
		case rest > 0 && status != http.StatusTooManyRequests:
			t.Errorf("held back for %v by %d", rest, status)
		case rest > 20*time.Minute:
			t.Errorf("held back for %v", rest)
		}
	})
}
