package decisionlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/policy"
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
		return line, fmt.Errorf("it is no line of a decision log: %w", strictjson.Readable(err))
	}
	if line.V != Version && line.V != firstVersion {
		return line, fmt.Errorf("it is of version %d, and this program reads versions %d and %d", line.V, firstVersion, Version)
	}
	if line.V == firstVersion && line.Decision != nil {
		if err := line.Decision.rename(raw); err != nil {
			return line, err
		}
	}
	contents := map[Kind]bool{
		KindOpen: line.Open != nil, KindDecision: line.Decision != nil, KindLost: line.Lost != nil,
		KindPruned: line.Pruned != nil, KindCheckpoint: line.Checkpoint != nil,
		KindBreakGlass: line.BreakGlass != nil, KindDeletion: line.Deletion != nil,
	}
	if has, known := contents[line.Kind]; known && !has {
		return line, fmt.Errorf("its kind is %q, and it has no content of that kind", line.Kind)
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

// firstVersion has other names of the result and the endpoint, and other values of results; see
// rename.
const firstVersion = 1

// rename takes over the result of a line of the first version. Without it, a denial
// would be read as no result.
func (d *Decision) rename(raw []byte) error {
	var former struct {
		Decision struct {
			Answer   gate.Result `json:"answer"`
			Endpoint string      `json:"door"`
		} `json:"decision"`
	}
	if err := json.Unmarshal(raw, &former); err != nil {
		return fmt.Errorf("it is no line of a decision log: %w", strictjson.Readable(err))
	}
	d.Result = cmp.Or(former.Decision.Answer, d.Result)
	d.Endpoint = cmp.Or(former.Decision.Endpoint, d.Endpoint)
	switch {
	case d.Result == "unable":
		d.Result = gate.Error
	case d.Result == gate.Allow && len(d.Rules) == 0 && d.Override == "" && slices.ContainsFunc(d.Reasons, notConcerned):
		d.Result = gate.Unchecked
	}
	for i := range d.Rules {
		if d.Rules[i].Result == "undecided" {
			d.Rules[i].Result = policy.Indeterminate
		}
	}
	return nil
}

func notConcerned(r Reason) bool { return r.Code == policy.NotConcerned }
