package segment

// The bounds of files and of the lines in them.
const (
	// MaxLine bounds a line, in bytes: the size of a line with every list full.
	MaxLine = 4 << 20
	// maxSegment bounds a compressed file that is read backwards, in bytes, since it is
	// decompressed into memory. Package journal rotates earlier.
	maxSegment = 1 << 30
	// maxFiles bounds the files of one log, in case the folder is not a log.
	maxFiles = 100_000
)
