package journal

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// turn rotates to another file if this one is large or old enough. The old file ends with a
// checkpoint, and is durable before the new one exists.
func (w *writer) turn() {
	f, c := w.files, &w.journal.config
	if f == nil || f.failed || f.good == 0 {
		return
	}
	if f.good < c.SegmentSize && time.Since(f.opened) < c.SegmentAge {
		return
	}
	if !w.say(true) {
		return
	}
	if f.sync {
		if err := w.flush(); err != nil {
			w.undo(w.place(), err)
			return
		}
		w.settle()
	}
	closed := f.name
	if err := f.begin(w.chain.Position().Seq + 1); err != nil {
		w.journal.failures.Add(1)
		w.complaints.report("another file cannot be begun", err)
		if f.name == closed {
			f.opened = time.Now() // retried after the same age, or with the next batch
			return
		}
	}
	w.say(false, w.opening(decisionlog.WhyRotation))
	w.compressor.wake(closed)
	w.prune(time.Now())
}

// compressLeft compresses the files that an earlier process left.
func (w *writer) compressLeft() {
	if w.files == nil {
		return
	}
	segments, err := decisionlog.Segments(w.files.folder)
	if err != nil {
		return // the next caller reports the error
	}
	for _, s := range segments {
		if !s.Compressed && s.Name != w.files.name {
			w.compressor.wake(s.Name)
		}
	}
}

// sized is a file of the log with its size and its modification time.
type sized struct {
	decisionlog.Segment
	bytes int64
	at    time.Time
}

// prune removes the oldest files while the log is too large, and files that are too old. The log
// records the removal first.
func (w *writer) prune(now time.Time) {
	w.pruned = now
	list, total, err := w.sizes()
	w.journal.bytesOnDisk.Store(total)
	if err != nil {
		w.complaints.report("its files cannot be listed", err)
		return
	}
	w.recreate(list)
	c := &w.journal.config
	var entries []*decisionlog.Entry
	var victims []sized
	for i, s := range list {
		why := ""
		switch {
		case i == len(list)-1 || s.Name == w.files.name: // the current file stays
		case total > c.TotalSize:
			why = "size"
		case c.TotalAge > 0 && now.Sub(s.at) > c.TotalAge:
			why = "age"
		}
		if why == "" {
			break
		}
		total -= s.bytes
		victims = append(victims, s)
		entries = append(entries, &decisionlog.Entry{Kind: decisionlog.KindPruned, Time: now, Pruned: &decisionlog.Pruned{
			Segment: strings.TrimSuffix(s.Name, decisionlog.Compressed), Through: list[i+1].First - 1, Why: why,
		}})
	}
	if len(victims) == 0 || !w.say(true, entries...) { // signed at once: a verification with keys accepts no unsigned removal
		return
	}
	for _, s := range victims {
		if err := w.compressor.remove(strings.TrimSuffix(s.Name, decisionlog.Compressed)); err != nil {
			w.complaints.report("a file that is too old cannot be removed", err)
		}
	}
	w.journal.bytesOnDisk.Store(total)
}

// recreate rotates to another file if the current one was deleted externally, since its lines
// would be lost. The chain shows the gap.
func (w *writer) recreate(list []sized) {
	f := w.files
	if f.failed || slices.ContainsFunc(list, func(s sized) bool { return s.Name == f.name }) {
		return
	}
	gone := f.name
	err := errors.New(gone + " was removed by another process")
	if failed := f.begin(w.chain.Position().Seq + 1); failed != nil {
		err = errors.Join(err, failed)
	}
	w.journal.failures.Add(1)
	w.complaints.report("its file is gone", err)
	if f.name != gone {
		w.say(false, w.opening(decisionlog.WhyRotation))
	}
}

// sizes returns the files of the log, the oldest first.
func (w *writer) sizes() (list []sized, total int64, err error) {
	segments, err := decisionlog.Segments(w.files.folder)
	for _, s := range segments {
		info, failed := os.Stat(s.Path())
		if failed != nil {
			continue // being compressed: the next check includes it
		}
		list = append(list, sized{Segment: s, bytes: info.Size(), at: info.ModTime()})
		total += info.Size()
	}
	return list, total, err
}

// compressor compresses closed files sequentially.
type compressor struct {
	folder     string
	sync       bool
	complaints complaints
	woken      chan struct{}

	mu    sync.Mutex // held while names change
	names []string
}

func newCompressor(folder string, sync bool, c complaints) *compressor {
	return &compressor{folder: folder, sync: sync, complaints: c, woken: make(chan struct{}, 1)}
}

// wake signals that a file is closed.
func (c *compressor) wake(name string) {
	c.mu.Lock()
	c.names = append(c.names, name)
	c.mu.Unlock()
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// run compresses until ctx ends. The next process compresses the rest.
func (c *compressor) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.woken:
		}
		for ctx.Err() == nil {
			c.mu.Lock()
			names := c.names
			if len(names) > 0 {
				c.names = names[1:]
			}
			c.mu.Unlock()
			if len(names) == 0 {
				break
			}
			if err := c.compress(ctx, filepath.Join(c.folder, names[0])); err != nil && ctx.Err() == nil {
				c.complaints.report("a file cannot be compressed, and stays as it is", err)
			}
		}
	}
}

// compress replaces a file with its compressed form. At least one of the two exists at any time.
func (c *compressor) compress(ctx context.Context, path string) error {
	source, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil // already pruned
	}
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // opened read-only
	info, err := source.Stat()
	if err != nil {
		return err
	}
	next := path + decisionlog.Compressed + temporary
	if err := packInto(next, &interruptible{ctx, source}, c.sync); err != nil {
		return errors.Join(err, remove(next))
	}
	if err := os.Chtimes(next, info.ModTime(), info.ModTime()); err != nil { // the age for pruning
		return errors.Join(err, remove(next))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := os.Stat(path); err != nil {
		return remove(next) // removed in the meantime
	}
	if err := os.Rename(next, path+decisionlog.Compressed); err != nil {
		return err
	}
	if c.sync {
		if err := syncFolder(c.folder); err != nil {
			return err
		}
	}
	return os.Remove(path)
}

// packInto writes a compressed copy.
func packInto(path string, source io.Reader, sync bool) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	packed, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	_, err = io.Copy(packed, source)
	err = errors.Join(err, packed.Close())
	if err == nil && sync {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// interruptible is a reader that stops when ctx ends.
type interruptible struct {
	ctx  context.Context
	from io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.from.Read(p)
}

// remove removes both forms of a file.
func (c *compressor) remove(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = slices.DeleteFunc(c.names, func(n string) bool { return n == name })
	path := filepath.Join(c.folder, name)
	return errors.Join(remove(path), remove(path+decisionlog.Compressed))
}
