package endpoints

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
)

// sealed is a disk that flushes nothing.
type sealed struct{ err error }

func (sealed) Mark() journal.Mark                          { return journal.Mark{} }
func (s sealed) Flush(context.Context, journal.Mark) error { return s.err }

func TestAnswersWaitForTheDisk(t *testing.T) {
	endpoint := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"allowed":true}`)
	})
	for _, row := range []struct {
		reason string
		err    error
		deny   bool
		status int
		body   string
	}{
		{"it is on disk", nil, true, http.StatusAccepted, `{"allowed":true}`},
		{"it is not, and nothing is admitted without", errors.New("full"), true, http.StatusServiceUnavailable, "the decision could not be written"},
		{"it is not, and the answer is given all the same", errors.New("full"), false, http.StatusAccepted, `{"allowed":true}`},
	} {
		guarded := &Durable{Handler: endpoint, Decisions: sealed{row.err}, Wait: time.Second, Deny: row.deny, Log: slog.New(slog.DiscardHandler)}
		got := httptest.NewRecorder()
		guarded.ServeHTTP(got, httptest.NewRequest(http.MethodPost, "/validate", nil))
		if leaves := got.Header().Get("Connection") == "close"; leaves != (row.status == http.StatusServiceUnavailable) {
			t.Errorf("%s: the connection is closed: %t", row.reason, leaves)
		}
		if got.Code != row.status || !strings.Contains(got.Body.String(), row.body) || got.Code == http.StatusAccepted && got.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s", row.reason, got.Code, got.Body)
		}
	}
}
