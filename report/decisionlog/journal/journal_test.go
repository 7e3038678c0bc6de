package journal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
)

func TestWritesInOrder(t *testing.T) {
	for _, sync := range []journal.Sync{journal.SyncAlways, journal.SyncInterval, journal.SyncNever} {
		t.Run(string(sync), func(t *testing.T) {
			k, keys := key(t)
			config := quiet(t.TempDir())
			config.Sync, config.CheckpointLines = sync, 100
			j := run(t, config, k)
			for i := range 1000 {
				j.Take(numbered(admitted(t), i))
			}
			flush(t, j.Journal)
			if got := uids(t, config.Folder); !slices.Equal(got, counted(1000)) {
				t.Errorf("%d lines, or in another order", len(got))
			}
			if err := j.stop(); err != nil {
				t.Fatal(err)
			}
			got := verified(t, config.Folder, keys)
			if got.Decisions != 1000 || !got.Closed || got.Unsigned != 0 || got.Checkpoints < 2 || got.Lost != 0 {
				t.Errorf("got %+v", got)
			}
			if s := j.Stats(); s.Written != 1000 || s.Lost != 0 || s.Flushed.IsZero() || s.Queued != 0 {
				t.Errorf("got %+v", s)
			}
		})
	}
}

// TestGoesOn: another process goes on with the chain, under another name and key.
func TestGoesOn(t *testing.T) {
	config := quiet(t.TempDir())
	all := decisionlog.Keys{}
	for i := range 3 {
		k, keys := key(t)
		for id, public := range keys {
			all[id] = public
		}
		config.Replica = "replica-" + string(rune('a'+i))
		j := run(t, config, k)
		j.Take(numbered(admitted(t), i))
		if err := j.stop(); err != nil {
			t.Fatal(err)
		}
	}
	got := verified(t, config.Folder, all)
	if got.Segments != 1 || got.Decisions != 3 || len(got.Signers) != 3 || got.Replica != "replica-c" || !got.Closed {
		t.Errorf("got %+v", got)
	}
}

func TestOneProcessWritesALog(t *testing.T) {
	k, _ := key(t)
	config := quiet(t.TempDir())
	first := run(t, config, k)
	second, err := journal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context(), k); err == nil || !strings.Contains(err.Error(), "another process writes this log") {
		t.Errorf("got %v", err)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	third := run(t, config, k) // it is free again
	if err := third.stop(); err != nil {
		t.Fatal(err)
	}
}

// TestTurnsCompressesAndRemoves: the chain goes on across files, compressed ones too,
// and the log records the removal of the oldest.
func TestTurnsCompressesAndRemoves(t *testing.T) {
	k, keys := key(t)
	config := quiet(t.TempDir())
	config.SegmentSize, config.TotalSize = 64<<10, 192<<10
	j := run(t, config, k)
	compressed := func() bool { // all segments but the open one
		plain, err := filepath.Glob(filepath.Join(config.Folder, "*.jsonl"))
		left := slices.DeleteFunc(plain, func(name string) bool { return filepath.Base(name) == decisionlog.HeadName })
		return err == nil && len(left) <= 1
	}
	for i := range 4000 {
		j.Take(numbered(admitted(t), i))
		if i%20 == 0 {
			flush(t, j.Journal)
			await(t, compressed) // a plain segment counts with its whole size, and would remove more
		}
	}
	flush(t, j.Journal)
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	got := verified(t, config.Folder, keys)
	if got.First == 1 || got.PrunedThrough+1 != got.First || got.Segments < 2 {
		t.Errorf("nothing was removed: %+v", got)
	}
	// Files that were not compressed before the end are when the log is opened again.
	j = run(t, config, k)
	await(t, compressed)
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	verified(t, config.Folder, keys)
	packed, err := filepath.Glob(filepath.Join(config.Folder, "*"+decisionlog.Compressed))
	if err != nil || len(packed) == 0 {
		t.Errorf("nothing is compressed: %v", err)
	}
	ids := uids(t, config.Folder)
	if want := counted(4000); !slices.Equal(ids, want[4000-len(ids):]) || len(ids) < 100 {
		t.Errorf("%d lines, or not the last ones", len(ids))
	}

	oldest := verified(t, config.Folder, keys).First
	if err := os.Remove(segmentAt(t, config.Folder, oldest)); err != nil {
		t.Fatal(err)
	}
	if _, err := decisionlog.Verify(config.Folder, decisionlog.VerifyOptions{Keys: keys}); err == nil {
		t.Error("the removal of the oldest file is not reported")
	}
}

func segmentAt(t *testing.T, folder string, first uint64) string {
	t.Helper()
	segments, err := decisionlog.Segments(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		if s.First == first {
			return s.Path()
		}
	}
	t.Fatalf("no file begins with number %d", first)
	return ""
}

// await asks until it holds; the test's own deadline ends it.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for !holds() {
		select {
		case <-t.Context().Done():
			t.Fatal("it never came to hold")
		case <-ticks.C:
		}
	}
}

func TestOldFilesAreRemoved(t *testing.T) {
	k, keys := key(t)
	config := quiet(t.TempDir())
	config.SegmentSize = 16 << 10
	j := run(t, config, k)
	for i := range 100 {
		j.Take(numbered(admitted(t), i))
		flush(t, j.Journal)
	}
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	segments, err := decisionlog.Segments(config.Folder)
	if err != nil || len(segments) < 4 {
		t.Fatalf("%d files, %v", len(segments), err)
	}
	ago := time.Now().Add(-48 * time.Hour)
	for _, s := range segments[:2] {
		if err := os.Chtimes(s.Path(), ago, ago); err != nil {
			t.Fatal(err)
		}
	}
	config.TotalAge = 24 * time.Hour
	j = run(t, config, k)
	for i := range 30 { // enough for another file
		j.Take(numbered(admitted(t), 100+i))
		flush(t, j.Journal)
	}
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	if got := verified(t, config.Folder, keys); got.First != segments[2].First {
		t.Errorf("it begins with %d, want %d", got.First, segments[2].First)
	}
}

// TestTornLine: what a crash leaves is set aside, and no whole line is lost.
func TestTornLine(t *testing.T) {
	for _, row := range []struct {
		reason string
		rest   string
		torn   bool
	}{
		{"nothing is torn", "", false},
		{"half a line", `{"v":2,"seq":13,"prev":"00`, true},
		{"zeros, as file systems leave after a power cut", strings.Repeat("\x00", 4096), true},
		{"a whole line that is none", "\x00\x00\x00\n", true},
		{"more than a line can have", strings.Repeat("x", 5<<20), true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			k, keys := key(t)
			config := quiet(t.TempDir())
			j := run(t, config, k)
			for i := range 10 {
				j.Take(numbered(admitted(t), i))
			}
			if err := j.stop(); err != nil {
				t.Fatal(err)
			}
			file, err := os.OpenFile(segmentAt(t, config.Folder, 1), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteString(row.rest); err != nil {
				t.Fatal(err)
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			j = run(t, config, k)
			j.Take(numbered(admitted(t), 10))
			if err := j.stop(); err != nil {
				t.Fatal(err)
			}
			got := verified(t, config.Folder, keys)
			if !slices.Equal(uids(t, config.Folder), counted(11)) || (len(got.Notes) > 0) != row.torn {
				t.Errorf("got %+v", got)
			}
			kept, err := filepath.Glob(filepath.Join(config.Folder, "torn-*"))
			if err != nil || (len(kept) == 1) != row.torn {
				t.Fatalf("kept %v, %v", kept, err)
			}
			if row.torn {
				if text, err := os.ReadFile(kept[0]); err != nil || string(text) != row.rest || !strings.Contains(got.Notes[0], filepath.Base(kept[0])) {
					t.Errorf("it is not kept as it was: %v, %v", err, got.Notes)
				}
			}
		})
	}
}

// TestDamageIsNotMended: a changed line in the middle stays as it is, and the
// log records it.
func TestDamageIsNotMended(t *testing.T) {
	for _, row := range []struct {
		reason, from, to, says string
	}{
		{"a byte was changed", `"uid":"4"`, `"uid":"5"`, "line 7: the hash of the line before it"},
		{"a line is no line", `{"v":2,"seq":6,`, `{"v":2,"seq":6,,`, "line 6 cannot be read"},
		{"a line is too long to be read", `{"v":2,"seq":6,`, `{"v":2,"seq":6,"x":"` + strings.Repeat("x", 5<<20) + `",`, "line 6 cannot be read"},
	} {
		t.Run(row.reason, func(t *testing.T) { damage(t, row.from, row.to, row.says) })
	}
}

func damage(t *testing.T, from, to, says string) {
	t.Helper()
	k, keys := key(t)
	config := quiet(t.TempDir())
	j := run(t, config, k)
	for i := range 10 {
		j.Take(numbered(admitted(t), i))
	}
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	path := segmentAt(t, config.Folder, 1)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Replace(text, []byte(from), []byte(to), 1)
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	j = run(t, config, k)
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(now, changed) {
		t.Error("the existing lines were changed")
	}
	opened, err := decisionlog.ParseLine(bytes.SplitN(now[len(changed):], []byte("\n"), 2)[0])
	if err != nil || opened.Open == nil || !strings.Contains(opened.Open.Damaged, says) {
		t.Errorf("the log records %+v, %v", opened.Open, err)
	}
	if _, err := decisionlog.Verify(config.Folder, decisionlog.VerifyOptions{Keys: keys}); err == nil {
		t.Error("the damage is not reported")
	}
}

// TestCutOffEnd: whole lines that are missing are named when the log is opened.
func TestCutOffEnd(t *testing.T) {
	k, keys := key(t)
	config := quiet(t.TempDir())
	j := run(t, config, k)
	for i := range 10 {
		j.Take(numbered(admitted(t), i))
	}
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	path := segmentAt(t, config.Folder, 1)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := bytes.SplitAfter(text, []byte("\n"))
	if err := os.WriteFile(path, bytes.Join(all[:8], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := decisionlog.Verify(config.Folder, decisionlog.VerifyOptions{Keys: keys}); err == nil || !strings.Contains(err.Error(), "its end was cut off") {
		t.Errorf("before it is opened: %v", err)
	}
	j = run(t, config, k)
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	if got := verified(t, config.Folder, keys); len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "4 lines of a signed checkpoint were missing") {
		t.Errorf("got %v", got.Notes)
	}
}

// TestStream: without a folder the lines go to a writer.
func TestStream(t *testing.T) {
	k, keys := key(t)
	var out bytes.Buffer
	config := quiet("")
	config.Stream = &out
	j := run(t, config, k)
	for i := range 5 {
		j.Take(numbered(admitted(t), i))
	}
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := decisionlog.VerifyFile(path, decisionlog.VerifyOptions{Keys: keys}); err != nil || got.Decisions != 5 || !got.Closed {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for reason, change := range map[string]func(*journal.Config){
		"no folder":                 func(c *journal.Config) { c.Folder = "" },
		"a folder and a stream":     func(c *journal.Config) { c.Stream = &bytes.Buffer{} },
		"no name":                   func(c *journal.Config) { c.Replica = "" },
		"no log":                    func(c *journal.Config) { c.Log = nil },
		"another word for sync":     func(c *journal.Config) { c.Sync = "often" },
		"a file of a byte":          func(c *journal.Config) { c.SegmentSize = 1 },
		"less in all than a file":   func(c *journal.Config) { c.TotalSize = 5 << 10 },
		"a negative age":            func(c *journal.Config) { c.TotalAge = -1 },
		"a queue that is too large": func(c *journal.Config) { c.Queue = 1 << 40 },
	} {
		config := quiet(t.TempDir())
		if _, err := journal.New(config); err != nil {
			t.Fatal("before: ", err)
		}
		change(&config)
		if _, err := journal.New(config); err == nil {
			t.Errorf("%s is taken", reason)
		}
	}
}
