package decisionlog

import "github.com/quaymaster/quaymaster/report/decisionlog/internal/segment"

const (
	// Compressed is the suffix of a compressed file's name (gzip, RFC 1952).
	Compressed = segment.Compressed
	// HeadName is the file in the log's folder with a copy of the last checkpoint.
	HeadName = segment.HeadName
)

// Segment is a file of a log.
type Segment = segment.Segment

// SegmentName is the name of a file, by the number of its first line. Names sort in the order of
// numbers.
func SegmentName(first uint64) string { return segment.Name(first) }

// Segments returns the files of a log, the oldest first. While a file is being compressed both
// forms exist; the uncompressed one is returned.
func Segments(folder string) ([]Segment, error) { return segment.List(folder) }
