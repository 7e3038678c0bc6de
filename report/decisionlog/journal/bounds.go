package journal

import "time"

// Defaults of the settings.
const (
	// DefaultQueue bounds the queue, in objects: a burst of a fifth of a second at 20,000 a
	// second, and some 40 MB at 10 kB an object.
	DefaultQueue = 4096
	// DefaultSegmentSize and DefaultSegmentAge are the limits of a file: large enough for few
	// files, small enough to read one at startup in under a second.
	DefaultSegmentSize = 64 << 20
	DefaultSegmentAge  = 24 * time.Hour
	// DefaultTotalSize bounds the log, in bytes on disk.
	DefaultTotalSize = 1 << 30
	// DefaultSyncEvery bounds the time before a line is flushed to disk.
	DefaultSyncEvery = time.Second
	// DefaultCheckpointLines and DefaultCheckpointInterval are the distances between checkpoints.
	// A signature costs some 30 µs and half a kB.
	DefaultCheckpointLines    = 1000
	DefaultCheckpointInterval = time.Minute
)

// The journal's own bounds.
const (
	// minSegmentSize rejects settings under which the log would retain nothing.
	minSegmentSize = 4 << 10
	// maxSegmentSize bounds the data that is read when the log is opened, and the memory to read
	// a compressed file backwards.
	maxSegmentSize = 1 << 30
	// maxQueue rejects a setting that would exhaust memory.
	maxQueue = 1 << 20
	// maxHeld bounds the queue in bytes, by report.Weight. The default queue holds some 150 MiB
	// when it is full of ordinary Pods because of a slow disk.
	maxHeld = 256 << 20
	// maxBatch bounds the objects of one write: a failed write loses all of them.
	maxBatch = 512
	// tick is the interval of checks for due work. It bounds the delay of all times above.
	tick = 200 * time.Millisecond
	// retryAfter is the pause between two attempts after a disk failure.
	retryAfter = time.Second
	// pruneEvery is the interval of checks for old files.
	pruneEvery = time.Minute
	// maxDrain bounds the objects that are written during shutdown: those queued before it began.
	maxDrain = maxQueue
)
