package clock_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/cluster/clock"
)

// TestRead: the difference of the clocks is that of the header, and a response without one is an error.
func TestRead(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		reason, date, body string
		status             int
		ahead              time.Duration
		version            string
		fails              bool
	}{
		{"equal", "Fri, 02 Jan 2026 03:04:05 GMT", `{"gitVersion": "v1.37.0"}`, http.StatusOK, -500 * time.Millisecond, "v1.37.0", false},
		{"the local clock is ahead", "Fri, 02 Jan 2026 03:02:05 GMT", `{}`, http.StatusOK, 2*time.Minute - 500*time.Millisecond, "", false},
		{"it is behind", "Fri, 02 Jan 2026 04:04:05 GMT", `{}`, http.StatusOK, -time.Hour - 500*time.Millisecond, "", false},
		{"the version may not be read", "Fri, 02 Jan 2026 03:04:05 GMT", "forbidden", http.StatusForbidden, -500 * time.Millisecond, "", false},
		{"credentials that are not accepted", "Fri, 02 Jan 2026 03:04:05 GMT", "", http.StatusUnauthorized, 0, "", true},
		{"no date", "yesterday", `{}`, http.StatusOK, 0, "", true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/version" {
				t.Errorf("%s: requested %s", row.reason, r.URL.Path)
			}
			w.Header().Set("Date", row.date)
			w.WriteHeader(row.status)
			_, _ = w.Write([]byte(row.body))
		}))
		got, err := clock.Read(t.Context(), &rest.Config{Host: server.URL}, func() time.Time { return now })
		server.Close()
		if (err != nil) != row.fails || got.Ahead != row.ahead || got.Version != row.version {
			t.Errorf("%s: %+v, %v", row.reason, got, err)
		}
		if err == nil && (!got.Server.Equal(now.Add(-row.ahead)) || got.Accuracy != 500*time.Millisecond) {
			t.Errorf("%s: the server's time is %s, accurate to %s", row.reason, got.Server, got.Accuracy)
		}
	}
	if got, err := clock.Read(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, time.Now); err == nil {
		t.Errorf("without an API server: %+v", got)
	}
}
