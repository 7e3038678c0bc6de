package machine

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestClockCanBeSet: the source of this release of Go is the expected one.
func TestClockCanBeSet(t *testing.T) {
	if _, text, err := settable(t.Context()); err != nil || !strings.Contains(string(text), "sec += offset()") {
		t.Error(err)
	}
}

func TestOff(t *testing.T) {
	for _, by := range []time.Duration{0, 2 * time.Hour, -time.Hour} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
		}))
		if off, err := Off(t.Context(), server.URL); err != nil || (off-by).Abs() > time.Minute {
			t.Errorf("%s: %s, %v", by, off, err)
		}
		server.Close()
	}
}

// TestSet: the offset is in the file, as the program maps it.
func TestSet(t *testing.T) {
	c := &Clock{file: filepath.Join(t.TempDir(), "clock")}
	if err := os.WriteFile(c.file, make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{2 * time.Hour, -time.Hour, 0} {
		if err := c.Set(by); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(c.file)
		if err != nil || len(content) != 8 || int64(binary.NativeEndian.Uint64(content)) != int64(by.Seconds()) {
			t.Errorf("%s: %v, %v", by, content, err)
		}
	}
}
