package journal

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// files is the folder of the log that is being written.
type files struct {
	folder string
	disk   disk
	sync   bool // false for SyncNever
	lock   *os.File
	handle handle
	name   string
	// good is the length of the file's valid part, in bytes.
	good    int64
	opened  time.Time
	failed  bool      // no write happens before the file is repaired
	retryAt time.Time // the time of the next attempt
	dirty   bool      // unflushed data exists
}

// found is the state that an earlier process left.
type found struct {
	position decisionlog.Position
	chain    string
	why      string
	torn     *decisionlog.Torn
	damaged  string
	missing  uint64
}

// openFiles continues the log in a folder, or begins one.
func openFiles(folder string, d disk, sync bool, now time.Time) (*files, found, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, found{}, fmt.Errorf("decision log: %w", err)
	}
	held, err := lock(filepath.Join(folder, "lock"))
	if err != nil {
		return nil, found{}, err
	}
	f := &files{folder: folder, disk: d, sync: sync, lock: held, opened: now}
	before, err := f.resume(now)
	if err != nil {
		return nil, found{}, errors.Join(err, held.Close())
	}
	return f, before, nil
}

// resume opens the last file after its last whole line, or creates one.
func (f *files) resume(now time.Time) (found, error) {
	if err := sweep(f.folder); err != nil {
		return found{}, fmt.Errorf("decision log: %w", err)
	}
	segments, err := decisionlog.Segments(f.folder)
	if err != nil {
		return found{}, err
	}
	before := found{why: decisionlog.WhyNew}
	var last decisionlog.Survey
	for i := len(segments) - 1; i >= 0 && before.position.Seq == 0; i-- {
		seen, err := decisionlog.Look(segments[i])
		if err != nil {
			return before, err
		}
		if i == len(segments)-1 {
			last = seen
		}
		before.position, before.chain, before.damaged = seen.Position, seen.Chain, seen.Damaged
	}
	if before.position.Seq > 0 {
		before.why = decisionlog.WhyStart
	}
	if before.chain == "" {
		before.chain = newName()
	}
	before.missing, err = missing(f.folder, before.position.Seq)
	if err != nil {
		before.damaged = joined(before.damaged, err.Error())
	}
	if n := len(segments); n > 0 && !segments[n-1].Compressed {
		before.torn, err = f.goOn(segments[n-1], last, now)
		return before, err
	}
	return before, f.begin(before.position.Seq + 1)
}

// newName returns a new random name for a log.
func newName() string {
	name := make([]byte, 16)
	_, _ = rand.Read(name) // it never fails
	return hex.EncodeToString(name)
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// missing counts the lines that a checkpoint signed and the log no longer has.
func missing(folder string, last uint64) (uint64, error) {
	head, err := decisionlog.Head(folder)
	if err != nil {
		return 0, fmt.Errorf("the copy of the last checkpoint cannot be read: %w", err)
	}
	return max(head, last) - last, nil
}

// goOn opens a file after its last whole line, and sets the rest aside.
func (f *files) goOn(s decisionlog.Segment, seen decisionlog.Survey, now time.Time) (*decisionlog.Torn, error) {
	info, err := os.Stat(s.Path())
	if err != nil {
		return nil, fmt.Errorf("decision log: %w", err)
	}
	var torn *decisionlog.Torn
	if rest := info.Size() - seen.End; rest > 0 {
		torn = &decisionlog.Torn{File: fmt.Sprintf("torn-%020d-%d", seen.Position.Seq+1, now.UnixNano()), Bytes: rest}
		if err := f.setAside(s.Path(), seen.End, torn.File); err != nil {
			return nil, fmt.Errorf("decision log: keep what a crash left: %w", err)
		}
	}
	f.name, f.good = s.Name, seen.End
	f.handle, err = f.disk.resume(s.Path(), f.good)
	if err != nil {
		return nil, fmt.Errorf("decision log: %w", err)
	}
	return torn, nil
}

// setAside copies the end of a file into another one.
func (f *files) setAside(path string, from int64, name string) (err error) {
	source, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // opened read-only
	if _, err := source.Seek(from, io.SeekStart); err != nil {
		return err
	}
	kept, err := os.OpenFile(filepath.Join(f.folder, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(kept, source)
	return errors.Join(err, kept.Sync(), kept.Close())
}

// begin rotates to a new file, named after its first line.
func (f *files) begin(first uint64) error {
	name := decisionlog.SegmentName(first)
	made, err := f.disk.create(filepath.Join(f.folder, name))
	if err != nil {
		return fmt.Errorf("decision log: %w", err)
	}
	if f.sync {
		err = syncFolder(f.folder)
	}
	if f.handle != nil {
		err = errors.Join(err, f.handle.Close())
	}
	f.handle, f.name, f.good, f.opened = made, name, 0, time.Now()
	return err
}

// write appends whole lines. After an error the file counts as unchanged.
func (f *files) write(text []byte) error {
	if _, err := f.handle.Write(text); err != nil {
		f.failed = true
		return err
	}
	f.good += int64(len(text))
	f.dirty = true
	return nil
}

// flush makes written data durable. After an error the state on disk is unknown.
func (f *files) flush() error {
	if !f.dirty {
		return nil
	}
	if err := f.handle.Sync(); err != nil {
		f.failed = true
		return err
	}
	f.dirty = false
	return nil
}

// mend continues after a failure, at the end of the valid data.
func (f *files) mend(to int64, now time.Time) error {
	if now.Before(f.retryAt) {
		return errors.New("the disk failed a moment ago")
	}
	f.retryAt = now.Add(retryAfter)
	again, err := f.disk.resume(filepath.Join(f.folder, f.name), to)
	if err != nil {
		return err
	}
	_ = f.handle.Close() // the failure was already reported
	f.handle, f.good, f.failed, f.dirty = again, to, false, true
	return nil
}

func (f *files) close() error { return errors.Join(f.handle.Close(), f.lock.Close()) }
