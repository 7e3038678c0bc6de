package decisionlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/report/decisionlog/internal/segment"
)

// BrokenError reports the first position at which a log differs from what the writer wrote.
type BrokenError struct {
	// Segment is the file, and Line the line's number in it, from 1; 0: the error does not apply
	// to one line.
	Segment string
	Line    int
	// Seq is the number of the line in the log, if known.
	Seq uint64
	// What is wrong, and the expected and found values; the latter two may be empty.
	What, Expected, Found string
}

// Error implements error.
func (b *BrokenError) Error() string {
	var text strings.Builder
	if b.Segment != "" {
		text.WriteString(b.Segment)
		if b.Line > 0 {
			text.WriteString(", line " + strconv.Itoa(b.Line))
		}
		if b.Seq > 0 {
			text.WriteString(" (number " + strconv.FormatUint(b.Seq, 10) + " of the log)")
		}
		text.WriteString(": ")
	}
	text.WriteString(b.What)
	if b.Expected+b.Found != "" {
		text.WriteString(": expected " + b.Expected + ", found " + b.Found)
	}
	return text.String()
}

// VerifyOptions configure the verification of a log.
type VerifyOptions struct {
	// Keys check the signatures of checkpoints; nil: they are not checked.
	Keys Keys
	// Anchors are lines that were stored elsewhere (by a webhook, in a collector), unchanged. The
	// log must contain each of them, except those older than its first line.
	Anchors [][]byte
}

// Summary describes a verified log.
type Summary struct {
	Replica string `json:"replica"`
	Chain   string `json:"chain"`
	// First and Last are the numbers of its first and last line.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// Segments, Lines, Decisions and Checkpoints are counts.
	Segments    int    `json:"segments"`
	Lines       uint64 `json:"lines"`
	Decisions   uint64 `json:"decisions"`
	Checkpoints uint64 `json:"checkpoints"`
	// Lost counts the decisions that the log itself records as lost.
	Lost uint64 `json:"lost"`
	// PrunedThrough is the last line that the log records as removed by size or age; 0: none.
	PrunedThrough uint64 `json:"prunedThrough,omitempty"`
	// Unsigned counts the lines after the last checkpoint.
	Unsigned uint64 `json:"unsigned"`
	// Closed: the log ends with a checkpoint that marks it as closed.
	Closed bool `json:"closed"`
	// Signers are the key IDs of its checkpoints, in order.
	Signers []string `json:"signers,omitempty"`
	// Notes are the problems that the log records about its own writing.
	Notes []string `json:"notes,omitempty"`
}

// Verify checks the log in a folder. The first broken position is a *BrokenError; the Summary
// then covers the lines before it.
func Verify(folder string, o VerifyOptions) (Summary, error) {
	segments, err := Segments(folder)
	if err != nil {
		return Summary{}, err
	}
	if len(segments) == 0 {
		return Summary{}, fmt.Errorf("decision log: there is no %s in %s", segment.Pattern, folder)
	}
	if head, err := segment.ReadHead(folder); err != nil {
		return Summary{}, err
	} else if head != nil {
		o.Anchors = append(o.Anchors[:len(o.Anchors):len(o.Anchors)], head)
	}
	v, err := newVerification(o)
	if err != nil {
		return Summary{}, err
	}
	for i, s := range segments {
		if err := v.segment(s, i == len(segments)-1); err != nil {
			return v.summary, err
		}
	}
	if v.summary.First > 1 && v.summary.PrunedThrough+1 < v.summary.First {
		return v.summary, &BrokenError{
			Segment: segments[0].Name, Line: 1, Seq: v.summary.First, What: "the log begins later than the end of its removed lines",
			Expected: "number " + fmt.Sprint(v.summary.PrunedThrough+1), Found: "number " + fmt.Sprint(v.summary.First),
		}
	}
	return v.summary, v.end()
}

// VerifyFile checks one file of a log, without the lines before it.
func VerifyFile(path string, o VerifyOptions) (Summary, error) {
	s, named := segment.Of(filepath.Dir(path), filepath.Base(path))
	if !named {
		s = Segment{Folder: filepath.Dir(path), Name: filepath.Base(path), Compressed: strings.HasSuffix(path, Compressed)}
	}
	v, err := newVerification(o)
	if err != nil {
		return Summary{}, err
	}
	if err := v.segment(s, true); err != nil {
		return v.summary, err
	}
	return v.summary, v.end()
}

// verification is one pass over the chain.
type verification struct {
	keys    Keys
	anchors map[uint64][]byte // not found yet
	pruned  uint64            // the last line recorded as removed, signed or not
	at      Position
	began   bool
	summary Summary
}

func newVerification(o VerifyOptions) (*verification, error) {
	v := &verification{keys: o.Keys, anchors: map[uint64][]byte{}}
	for _, raw := range o.Anchors {
		line, err := ParseLine(raw)
		if err != nil {
			return nil, fmt.Errorf("decision log: a line to hold the log against: %w", err)
		}
		if before, twice := v.anchors[line.Seq]; twice && !bytes.Equal(before, raw) {
			return nil, &BrokenError{Seq: line.Seq, What: fmt.Sprintf("two lines to hold the log against have number %d and differ: are they of one log?", line.Seq)}
		}
		v.anchors[line.Seq] = raw
	}
	return v, nil
}

// segment verifies the chain through one file.
func (v *verification) segment(s Segment, last bool) error {
	opened, err := s.Open()
	if err != nil {
		return &BrokenError{Segment: s.Name, What: "it cannot be read: " + err.Error()}
	}
	defer func() { _ = opened.Close() }() // opened read-only
	v.summary.Segments++
	for {
		raw, err := opened.Next()
		if errors.Is(err, io.EOF) {
			return v.named(s, opened.Number, last)
		}
		number := opened.Number
		if err != nil {
			number = opened.Place(err)
			if errors.Is(err, segment.ErrTorn) {
				err = errors.New("the line is not whole: it is being written, was cut off, or is what a crash left")
			}
			return &BrokenError{Segment: s.Name, Line: number, Seq: v.at.Seq + 1, What: err.Error()}
		}
		line, err := ParseLine(raw)
		if err == nil {
			err = v.line(&line, s)
		}
		if err != nil {
			return v.place(err, s, number)
		}
	}
}

// named rejects a file without lines, unless it is new.
func (v *verification) named(s Segment, lines int, last bool) error {
	if lines == 0 && (!last || !v.began) {
		return &BrokenError{Segment: s.Name, What: "there is no line in it"}
	}
	return nil
}

// place adds the position to an error.
func (v *verification) place(err error, s Segment, number int) error {
	broken, ok := errors.AsType[*BrokenError](err)
	if !ok {
		broken = &BrokenError{What: err.Error()}
	}
	broken.Segment, broken.Line = s.Name, number
	if v.began {
		broken.Seq = v.at.Seq + 1
	}
	return broken
}

// line checks one line, and counts it.
func (v *verification) line(l *Line, s Segment) error {
	if !v.began {
		if err := v.begin(l, s); err != nil {
			return err
		}
	}
	if err := l.after(v.at); err != nil {
		return err
	}
	if anchor, ok := v.anchors[l.Seq]; ok {
		if !bytes.Equal(anchor, l.Raw) {
			return &BrokenError{What: "another line was seen under its number", Expected: string(anchor), Found: string(l.Raw)}
		}
		delete(v.anchors, l.Seq)
	}
	if err := v.count(l); err != nil {
		return err
	}
	v.at = v.at.After(l.Raw)
	v.summary.Last = l.Seq
	v.summary.Lines++
	return nil
}

// begin accepts the first line's position, since there is no line before it.
func (v *verification) begin(l *Line, s Segment) error {
	if l.Seq == 0 || s.First != 0 && s.First != l.Seq {
		return &BrokenError{What: "the number of the first line", Expected: fmt.Sprint(s.First), Found: fmt.Sprint(l.Seq)}
	}
	var before Position
	if l.Seq > 1 {
		hash, err := hex.DecodeString(l.Prev)
		if err != nil || len(hash) != len(before.Hash) {
			return &BrokenError{What: "the hash of the line before it is none", Expected: "64 hexadecimal digits", Found: l.Prev}
		}
		before = Position{Seq: l.Seq - 1, Hash: [sha256.Size]byte(hash)}
	}
	v.began, v.at = true, before
	v.summary.First, v.summary.Replica = l.Seq, l.Replica
	return nil
}

// count adds a line to the summary.
func (v *verification) count(l *Line) error {
	v.summary.Unsigned++
	v.summary.Closed = false
	if l.Kind == KindOpen { // another process may continue the log
		v.summary.Replica = l.Replica
	}
	if l.Replica != v.summary.Replica {
		return &BrokenError{What: "the replica that writes it", Expected: v.summary.Replica, Found: l.Replica}
	}
	switch l.Kind {
	case KindDecision:
		v.summary.Decisions++
	case KindLost:
		v.summary.Lost += l.Lost.Records
		v.note(l, "%d decisions were lost since %s: %s", l.Lost.Records, l.Lost.Since.Format("2006-01-02T15:04:05Z07:00"), l.Lost.Why)
	case KindPruned:
		v.pruned = max(v.pruned, l.Pruned.Through)
		if v.keys == nil { // with keys, only after a signed checkpoint: an unsigned line may be forged
			v.summary.PrunedThrough = v.pruned
		}
	case KindOpen:
		return v.open(l)
	case KindCheckpoint:
		return v.checkpoint(l)
	}
	return nil
}

func (v *verification) open(l *Line) error {
	if err := v.same(l.Open.Chain); err != nil {
		return err
	}
	if torn := l.Open.Torn; torn != nil {
		v.note(l, "a crash left an unfinished line of %d bytes, which is saved in %s", torn.Bytes, torn.File)
	}
	if l.Open.Damaged != "" {
		v.note(l, "the log was found damaged: %s", l.Open.Damaged)
	}
	if l.Open.Missing > 0 {
		v.note(l, "%d lines of a signed checkpoint were missing: the machine lost power, or a user removed them", l.Open.Missing)
	}
	return nil
}

// same rejects a line of another log.
func (v *verification) same(chain string) error {
	if v.summary.Chain == "" {
		v.summary.Chain = chain
	}
	if v.summary.Chain != chain {
		return &BrokenError{What: "the name of the log", Expected: v.summary.Chain, Found: chain}
	}
	return nil
}

// maxNotes bounds the notes of one log.
const maxNotes = 1000

func (v *verification) note(l *Line, format string, args ...any) {
	if len(v.summary.Notes) < maxNotes {
		v.summary.Notes = append(v.summary.Notes, fmt.Sprintf("number %d: ", l.Seq)+fmt.Sprintf(format, args...))
	}
}

func (v *verification) checkpoint(l *Line) error {
	c := l.Checkpoint
	if err := v.same(c.Chain); err != nil {
		return err
	}
	if v.keys != nil {
		if err := v.signed(l); err != nil {
			return err
		}
	}
	v.summary.Checkpoints++
	v.summary.PrunedThrough = v.pruned
	v.summary.Unsigned, v.summary.Closed = 0, c.Closed
	if n := len(v.summary.Signers); n == 0 || v.summary.Signers[n-1] != c.Key {
		v.summary.Signers = append(v.summary.Signers, c.Key)
	}
	return nil
}

// signed checks a checkpoint's signature, and that the line has no content beyond the signed
// fields.
func (v *verification) signed(l *Line) error {
	if v.keys[l.Checkpoint.Key] == nil {
		return &BrokenError{What: "the checkpoint is signed with a key that is not in --key", Expected: strings.Join(v.keys.ids(), " or "), Found: l.Checkpoint.Key}
	}
	if !v.keys.check(&l.Entry) {
		return &BrokenError{What: "the checkpoint's signature is not that of its key " + l.Checkpoint.Key}
	}
	again, err := NewChain(l.Replica, v.at)
	if err != nil {
		return err
	}
	entry := l.Entry
	again.version = l.V
	written, err := again.Append(nil, &entry)
	if err != nil {
		return err
	}
	if !bytes.Equal(bytes.TrimRight(written, "\n"), l.Raw) {
		return &BrokenError{What: "the checkpoint has content that is not signed"}
	}
	return nil
}

// end checks for anchors that were not found.
func (v *verification) end() error {
	if !v.began {
		return errors.New("decision log: there is no line in it")
	}
	for seq := range v.anchors {
		if seq > v.summary.Last {
			return &BrokenError{
				Seq: seq, What: fmt.Sprintf("the log ends at number %d, and line number %d was seen elsewhere or by the last checkpoint: its end was cut off",
					v.summary.Last, seq),
			}
		}
	}
	if v.keys != nil && v.summary.Checkpoints == 0 {
		return &BrokenError{What: "there is no checkpoint in it, so that no line is signed: it is younger than checkpointInterval (1m), or it was rewritten"}
	}
	return nil
}
