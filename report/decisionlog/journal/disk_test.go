package journal

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/workload"
)

// failing is a disk that is full, or fails to flush, when a test sets it.
type failing struct {
	realDisk
	full, unflushed atomic.Bool
}

func (f *failing) create(path string) (handle, error) {
	h, err := f.realDisk.create(path)
	return &failingFile{h, f}, err
}

func (f *failing) resume(path string, at int64) (handle, error) {
	h, err := f.realDisk.resume(path, at)
	if err != nil {
		return nil, err
	}
	return &failingFile{h, f}, nil
}

type failingFile struct {
	handle
	of *failing
}

// Write takes a part of the text when the disk is full.
func (f *failingFile) Write(text []byte) (int, error) {
	if f.of.full.Load() {
		n, _ := f.handle.Write(text[:len(text)*2/3])
		return n, syscall.ENOSPC
	}
	return f.handle.Write(text)
}

func (f *failingFile) Sync() error {
	if f.of.unflushed.Load() {
		return syscall.EIO
	}
	return f.handle.Sync()
}

// TestDiskFails: unwritten lines are lost, counted and reported, no partial line
// stays, and the log goes on by itself.
func TestDiskFails(t *testing.T) {
	for _, row := range []struct {
		reason string
		fail   func(*failing, bool)
	}{
		{"it is full", func(f *failing, on bool) { f.full.Store(on) }},
		{"it cannot be flushed", func(f *failing, on bool) { f.unflushed.Store(on) }},
	} {
		t.Run(row.reason, func(t *testing.T) {
			folder := t.TempDir()
			j, err := New(Config{Folder: folder, Replica: "a", Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Sync: SyncAlways, CheckpointLines: 3})
			if err != nil {
				t.Fatal(err)
			}
			hostile := &failing{}
			j.disk = hostile
			key, err := decisionlog.GenerateKey()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- j.Run(ctx, key) }()
			<-j.Ready()
			take := func(n int) error {
				mark := j.Mark()
				j.Take(report.Decided{Occasion: report.Occasion{UID: strconv.Itoa(n), Undecided: "test"}})
				return j.Flush(t.Context(), mark)
			}
			for n := range 5 {
				if err := take(n); err != nil {
					t.Fatal(err)
				}
			}
			row.fail(hostile, true)
			for n := 5; n < 8; n++ {
				if err := take(n); err == nil {
					t.Fatal("it is reported on disk")
				}
			}
			row.fail(hostile, false)
			// It is tried again after a moment.
			n := 8
			for ; j.Stats().Lost < 100_000; n++ {
				if take(n) == nil {
					break
				}
				select {
				case <-t.Context().Done():
					t.Fatal("it never goes on")
				case <-time.After(50 * time.Millisecond):
				}
			}
			cancel()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			got, err := decisionlog.Verify(folder, decisionlog.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Lost != uint64(n-5) || got.Decisions != 6 || !got.Closed || j.Stats().Lost != got.Lost || j.Stats().Failures == 0 {
				t.Errorf("%d were lost: %+v, %+v", n-5, got, j.Stats())
			}
			left, err := filepath.Glob(filepath.Join(folder, "torn-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// TestLargeObjects: a queue of any length is full when what waits is large, and takes on
// once that is written.
func TestLargeObjects(t *testing.T) {
	j, err := New(Config{Folder: t.TempDir(), Replica: "a", Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Queue: 1000})
	if err != nil {
		t.Fatal(err)
	}
	large, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + strings.Repeat("x", 2<<20) + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	most := maxHeld / int(report.Weight(report.Decided{Outcome: gate.Outcome{Object: large}}))
	take := func() {
		j.Take(report.Decided{Outcome: gate.Outcome{Object: large}, Occasion: report.Occasion{Undecided: "test"}})
	}
	for range most + 3 { // no writer runs yet
		take()
	}
	if gone := j.Stats().Lost; gone != 3 {
		t.Errorf("%d are lost of %d, want 3", gone, most+3)
	}
	key, err := decisionlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx, key) }()
	_ = j.Flush(t.Context(), j.Mark()) // it reports the earlier losses
	take()
	if err := j.Flush(t.Context(), j.Mark()); err != nil || j.Stats().Lost != 3 {
		t.Errorf("written lines make no room: %v, %d lost", err, j.Stats().Lost)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// TestQueueIsFull: Take never waits, and the log records the lines that it did not take.
func TestQueueIsFull(t *testing.T) {
	folder := t.TempDir()
	j, err := New(Config{Folder: folder, Replica: "a", Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Queue: 10})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 25 { // no writer runs yet
		j.Take(report.Decided{Occasion: report.Occasion{UID: strconv.Itoa(n), Undecided: "test"}})
	}
	mark := Mark{}
	key, err := decisionlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx, key) }()
	if err := j.Flush(t.Context(), mark); err == nil || !strings.Contains(err.Error(), "decisions were lost") {
		t.Errorf("something was lost since: %v", err)
	}
	if err := j.Flush(t.Context(), j.Mark()); err != nil {
		t.Errorf("nothing was lost since: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	got, err := decisionlog.Verify(folder, decisionlog.VerifyOptions{})
	if err != nil || got.Decisions != 10 || got.Lost != 15 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "15 decisions were lost") || !strings.Contains(got.Notes[0], "the queue was full") {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := j.Flush(t.Context(), j.Mark()); err == nil {
		t.Error("it is closed, and flushes")
	}
}

// TestFlushEnds: a caller's own timeout ends its wait.
func TestFlushEnds(t *testing.T) {
	j, err := New(Config{Folder: t.TempDir(), Replica: "a", Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := j.Flush(ctx, j.Mark()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestFileIsRemoved: removal of the open file does not stop the log.
func TestFileIsRemoved(t *testing.T) {
	folder := t.TempDir()
	j, err := New(Config{Folder: folder, Replica: "a", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	key, err := decisionlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	w, err := j.open(key)
	if err != nil {
		t.Fatal(err)
	}
	decided := []item{{decided: report.Decided{Occasion: report.Occasion{Undecided: "test"}}}}
	w.commit(slices.Clone(decided))
	if err := os.Remove(filepath.Join(folder, decisionlog.SegmentName(1))); err != nil {
		t.Fatal(err)
	}
	w.prune(time.Now())
	w.commit(slices.Clone(decided))
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	var kinds []decisionlog.Kind
	for line, err := range decisionlog.Read(folder, 1) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, line.Kind)
	}
	if want := []decisionlog.Kind{decisionlog.KindOpen, decisionlog.KindDecision, decisionlog.KindCheckpoint}; !slices.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
	if _, err := decisionlog.Verify(folder, decisionlog.VerifyOptions{}); err == nil || !strings.Contains(err.Error(), "begins later than the end of its removed lines") {
		t.Errorf("missing lines are not reported: %v", err)
	}
}
