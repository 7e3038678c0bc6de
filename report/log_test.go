package report_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/report"
)

// TestLog compares the lines of each scenario, which people parse, with a golden
// file. The times are left out.
func TestLog(t *testing.T) {
	var all bytes.Buffer
	for _, s := range scenarios {
		all.WriteString("# " + s.name + "\n")
		logger := slog.New(slog.NewJSONHandler(&all, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "ms" {
				return slog.Attr{}
			}
			return a
		}}))
		for _, o := range s.outcomes(t) {
			report.Log(t.Context(), logger, o, slog.String("uid", "u-1"))
		}
	}
	path := filepath.Join("testdata", "log.jsonl")
	if *update {
		if err := os.WriteFile(path, all.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(all.Bytes(), want) {
		t.Errorf("the log differs from %s; look at it, and write it with -update:\n%s", path, all.Bytes())
	}
}
