package journal

import "time"

// What holds unless it is set.
const (
	// DefaultQueue bounds what waits to be written, in objects: a burst of a fifth of a
	// second at 20,000 a second, and some 40 MB where objects have 10 kB.
	DefaultQueue = 4096
	// DefaultSegmentSize and DefaultSegmentAge are when a file is closed: large enough
	// that there are few of them, small enough to be read at a start in under a second.
	DefaultSegmentSize = 64 << 20
	DefaultSegmentAge  = 24 * time.Hour
	// DefaultTotalSize bounds the log, in bytes on disk.
	DefaultTotalSize = 1 << 30
	// DefaultSyncEvery is how long a line may be in memory only.
	DefaultSyncEvery = time.Second
	// DefaultCheckpointLines and DefaultCheckpointInterval are when a checkpoint is
	// written: a signature costs some 30 µs and half a kB.
	DefaultCheckpointLines    = 1000
	DefaultCheckpointInterval = time.Minute
)

// The journal's own bounds.
const (
	// minSegmentSize and minTotalSize refuse settings by which the log would keep
	// nothing; of total, the file that is written to is a part.
	minSegmentSize = 4 << 10
	// maxSegmentSize bounds what is read when the log is opened, and held in memory to
	// read a compressed file backwards.
	maxSegmentSize = 1 << 30
	// maxQueue bounds a setting that would fill memory.
	maxQueue = 1 << 20
	// maxHeld bounds what the queue holds, in bytes by report.Weight: the usual one, full
	// of usual Pods, has some 150 MiB while a disk is slow.
	maxHeld = 256 << 20
	// maxBatch bounds the objects that are written at once: a failure costs as many.
	maxBatch = 512
	// tick is how often is looked at what is due: it bounds by how much any of the
	// times above is late.
	tick = 200 * time.Millisecond
	// retryAfter is the pause between two attempts to go on with a disk that failed.
	retryAfter = time.Second
	// pruneEvery is how often is looked for what is too old.
	pruneEvery = time.Minute
	// maxDrain bounds what is still written at the end, in objects: what was taken
	// before the end was told.
	maxDrain = maxQueue
)
