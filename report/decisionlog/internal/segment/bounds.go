package segment

// The bounds of files and of the lines in them.
const (
	// MaxLine bounds a line that is read, in bytes: what a line with every list full
	// has.
	MaxLine = 4 << 20
	// maxSegment bounds a file that is read backwards from its compressed form, which
	// has to be in memory, in bytes. Package journal rotates before.
	maxSegment = 1 << 30
	// maxFiles bounds the files of one log, in case of a folder that is no log's.
	maxFiles = 100_000
)
