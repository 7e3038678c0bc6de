package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Sync is when lines are flushed to disk.
type Sync string

// The choices.
const (
	// SyncInterval flushes every SyncEvery.
	SyncInterval Sync = "interval"
	// SyncAlways flushes each batch before it counts as written.
	SyncAlways Sync = "always"
	// SyncNever leaves flushing to the operating system. A process crash loses nothing; a machine
	// crash loses some 30 seconds.
	SyncNever Sync = "never"
)

// Config configures a Journal.
type Config struct {
	// Folder is the log's own folder. It is created if missing. Empty: lines are written to
	// Stream alone.
	Folder string
	Stream io.Writer
	// Replica and Program identify the writer. Replica is required.
	Replica, Program string
	// Sync is interval unless set, and SyncEvery DefaultSyncEvery.
	Sync      Sync
	SyncEvery time.Duration
	// The defaults are in bounds.go. TotalAge has none: by default no file is removed by age.
	SegmentSize, TotalSize int64
	SegmentAge, TotalAge   time.Duration
	CheckpointLines        uint64
	CheckpointInterval     time.Duration
	Queue                  int
	// Log receives errors; required.
	Log *slog.Logger
}

// Check returns the error that New would return.
func (c Config) Check() error { return c.fill() }

// fill sets the defaults, and rejects invalid settings.
func (c *Config) fill() error {
	c.Sync = cmp.Or(c.Sync, SyncInterval)
	c.SyncEvery = cmp.Or(c.SyncEvery, DefaultSyncEvery)
	c.SegmentSize = cmp.Or(c.SegmentSize, DefaultSegmentSize)
	c.SegmentAge = cmp.Or(c.SegmentAge, DefaultSegmentAge)
	c.TotalSize = cmp.Or(c.TotalSize, DefaultTotalSize)
	c.CheckpointLines = cmp.Or(c.CheckpointLines, DefaultCheckpointLines)
	c.CheckpointInterval = cmp.Or(c.CheckpointInterval, DefaultCheckpointInterval)
	c.Queue = cmp.Or(c.Queue, DefaultQueue)
	switch {
	case c.Log == nil || c.Replica == "":
		return errors.New("decision log: want the name of the replica and a log for trouble")
	case (c.Folder == "") == (c.Stream == nil):
		return errors.New("decision log: want a folder or a stream, and not both")
	case c.Sync != SyncInterval && c.Sync != SyncAlways && c.Sync != SyncNever:
		return fmt.Errorf("decision log: sync %q: want always, interval or never", c.Sync)
	case c.SegmentSize < minSegmentSize || c.SegmentSize > maxSegmentSize:
		return fmt.Errorf("decision log: a file of %d bytes: want %d to %d", c.SegmentSize, minSegmentSize, maxSegmentSize)
	case c.TotalSize < 2*c.SegmentSize:
		return fmt.Errorf("decision log: %d bytes in all: want at least two files of %d bytes", c.TotalSize, c.SegmentSize)
	case c.SyncEvery < 0 || c.SegmentAge < 0 || c.TotalAge < 0 || c.CheckpointInterval < 0:
		return errors.New("decision log: a time is negative")
	case c.Queue < 1 || c.Queue > maxQueue:
		return fmt.Errorf("decision log: a queue of %d: want 1 to %d", c.Queue, maxQueue)
	}
	return nil
}
