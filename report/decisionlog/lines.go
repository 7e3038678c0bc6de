package decisionlog

import (
	"encoding/json"
	"fmt"

	"github.com/quaymaster/quaymaster/report/decisionlog/internal/segment"
)

// Line is a line as read from a file.
type Line struct {
	Entry
	// Raw is the line, without its line break.
	Raw []byte
	// Segment is the file's name, and Number the line's number in it, from 1; 0 if unknown.
	Segment string
	Number  int
}

// ParseLine parses one line. Unknown fields are ignored, since later programs may add them. An
// unknown version is an error.
func ParseLine(raw []byte) (Line, error) {
	line := Line{Raw: raw}
	if len(raw) > segment.MaxLine {
		return line, segment.ErrLong
	}
	if err := json.Unmarshal(raw, &line.Entry); err != nil {
		return line, fmt.Errorf("it is no line of a decision log: %w", err)
	}
	if line.V != Version {
		return line, fmt.Errorf("it is of version %d, and this program reads version %d", line.V, Version)
	}
	contents := map[Kind]bool{
		KindOpen: line.Open != nil, KindDecision: line.Decision != nil, KindLost: line.Lost != nil,
		KindPruned: line.Pruned != nil, KindCheckpoint: line.Checkpoint != nil,
		KindBreakGlass: line.BreakGlass != nil,
	}
	if has, known := contents[line.Kind]; known && !has {
		return line, fmt.Errorf("it is said to be of kind %q, and has nothing of it", line.Kind)
	}
	return line, nil
}

// after checks that the line follows a position.
func (l *Line) after(at Position) error {
	if want := fmt.Sprintf("%x", at.Hash); l.Prev != want {
		return &BrokenError{What: "the hash of the line before it", Expected: want, Found: l.Prev}
	}
	if l.Seq != at.Seq+1 {
		return &BrokenError{What: "the number of the line", Expected: fmt.Sprint(at.Seq + 1), Found: fmt.Sprint(l.Seq)}
	}
	return nil
}
