package decisionlog_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// TestYesterday: the log of the version before is read and verified. testdata/yesterday was
// written by that version, signed by a key that was thrown away.
func TestYesterday(t *testing.T) {
	const folder = "testdata/yesterday"
	public, err := os.ReadFile(filepath.Join(folder, "key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := decisionlog.ParsePublicKeys(public)
	if err != nil {
		t.Fatal(err)
	}
	found, err := decisionlog.Verify(folder, decisionlog.VerifyOptions{Keys: keys})
	if err != nil || found.Decisions != 2 || found.Checkpoints != 1 || !found.Closed || found.Unsigned != 0 || found.Replica != "before-0" {
		t.Errorf("%+v, %v", found, err)
	}
	var results []policy.Result
	for line, err := range decisionlog.Read(folder, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if line.Decision != nil {
			results = append(results, line.Decision.Rules[0].Result)
		}
	}
	if len(results) != 2 || results[0] != policy.Pass || results[1] != policy.Fail {
		t.Errorf("it says %v", results)
	}

	text, err := os.ReadFile(filepath.Join(folder, decisionlog.SegmentName(1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ reason, before, after string }{
		{"an answer was turned round", `"answer":"deny"`, `"answer":"allow"`},
		{"a name was changed", `"name":"bare"`, `"name":"bore"`},
	} {
		changed := t.TempDir()
		other := bytes.Replace(text, []byte(c.before), []byte(c.after), 1)
		if bytes.Equal(other, text) {
			t.Fatalf("%s: there is no %s", c.reason, c.before)
		}
		if err := os.WriteFile(filepath.Join(changed, decisionlog.SegmentName(1)), other, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := decisionlog.Verify(changed, decisionlog.VerifyOptions{Keys: keys})
		if _, broken := errors.AsType[*decisionlog.BrokenError](err); !broken {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}
