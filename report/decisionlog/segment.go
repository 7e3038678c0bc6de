package decisionlog

import "github.com/quaymaster/quaymaster/report/decisionlog/internal/segment"

const (
	// Compressed is what the name of a compressed file ends with (gzip, RFC 1952).
	Compressed = segment.Compressed
	// HeadName is the file beside the log that has a copy of the last checkpoint.
	HeadName = segment.HeadName
)

// Segment is a file of a log.
type Segment = segment.Segment

// SegmentName is the name of the file that begins with a line; names sort as numbers do.
func SegmentName(first uint64) string { return segment.Name(first) }

// Segments returns the files of a log, the oldest first. Of one that is there twice,
// since it was being compressed, the one that is not compressed counts.
func Segments(folder string) ([]Segment, error) { return segment.List(folder) }
