package recall

import (
	"errors"
	"io/fs"
	"reflect"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// MaxLines bounds the lines that are read, the latest: some 100 MB of a file, and some seconds.
const MaxLines = 50_000

// Source is a decision log.
type Source struct {
	Folder string
	// Through is the number of the last line to read; 0 means the log's last.
	Through uint64
	// Lines bounds the lines that are read, the latest; 0 means MaxLines.
	Lines uint64
	// Since is the time of the earliest decision; zero means no limit.
	Since time.Time
}

// Inventory accepts records in the order of their times; *inventory.Inventory implements it.
type Inventory interface {
	Add(o report.Occasion, r report.Record, about report.Resource)
}

// Last returns the number of a log's last whole line; 0 where there is none, or no log.
func Last(folder string) (uint64, error) {
	line, err := lastLine(folder)
	return line.Seq, err
}

func lastLine(folder string) (decisionlog.Line, error) {
	for line, err := range decisionlog.ReadBack(folder) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		return line, err
	}
	return decisionlog.Line{}, nil
}

// Fill adds the records of a log to an inventory, and returns their number. It returns an error
// at an unreadable line, after adding the records before it.
func Fill(known Inventory, from Source) (records int, err error) {
	if known == nil {
		return 0, errors.New("recall: want an inventory")
	}
	err = from.each(func(lines []decisionlog.Entry) error {
		known.Add(occasionOf(&lines[0]), recordOf(lines), lines[0].Decision.Object)
		records++
		return nil
	})
	return records, err
}

// each calls do with the lines of each object that hold the final decision on it, in the order of
// the log, until do returns an error.
func (from Source) each(do func(lines []decisionlog.Entry) error) error {
	if from.Lines == 0 {
		from.Lines = MaxLines
	}
	if from.Through == 0 {
		last, err := lastLine(from.Folder)
		if err != nil || last.Time.Before(from.Since) {
			return err
		}
		from.Through = last.Seq
	}
	if from.Through == 0 {
		return nil
	}
	begin := uint64(1)
	if from.Through > from.Lines {
		begin = from.Through - from.Lines + 1
	}
	var now []decisionlog.Entry // the lines of one object
	flush := func() (err error) {
		if len(now) > 0 && !saidAgain(now[0].Decision) {
			err = do(now)
		}
		now = now[:0]
		return err
	}
	for line, err := range decisionlog.Read(from.Folder, begin) {
		if err != nil {
			return errors.Join(flush(), err)
		}
		if line.Seq > from.Through {
			break
		}
		if line.Decision == nil || line.Time.Before(from.Since) {
			continue
		}
		if len(now) > 0 && !together(&now[0], &line.Entry) {
			if err := flush(); err != nil {
				return err
			}
		}
		now = append(now, line.Entry)
	}
	return flush()
}

// saidAgain reports whether a later line has the final decision: the validating webhook reviews
// each request that the mutating one admits.
func saidAgain(d *decisionlog.Decision) bool {
	return d.Endpoint == mutatingEndpoint && d.Allowed && !d.Shadow && d.Undecided == ""
}

// mutatingEndpoint is the endpoint's name in the log.
const mutatingEndpoint = "mutate"

// together reports whether two lines belong to one object and occasion.
func together(a, b *decisionlog.Entry) bool {
	one, other := a.Decision, b.Decision
	return a.Time.Equal(b.Time) && one.Process == other.Process && one.Endpoint == other.Endpoint && one.UID == other.UID &&
		reflect.DeepEqual(one.Object, other.Object)
}

func occasionOf(e *decisionlog.Entry) report.Occasion {
	d := e.Decision
	return report.Occasion{
		Time: e.Time, Process: d.Process, Endpoint: d.Endpoint, UID: d.UID, Operation: d.Operation, User: d.User, Groups: d.Groups,
		DryRun: d.DryRun, Allowed: d.Allowed, Shadow: d.Shadow, Undecided: d.Undecided,
	}
}

// recordOf joins the lines of one object to a record.
func recordOf(lines []decisionlog.Entry) report.Record {
	first := lines[0].Decision
	if first.Undecided != "" {
		return report.Record{}
	}
	r := report.Record{
		Object: report.Object{APIVersion: first.Object.APIVersion, Kind: first.Object.Kind, Namespace: first.Object.Namespace, Name: first.Object.Name},
		Result: gate.Unchecked, Images: []report.Image{}, PolicySetHash: first.PolicySet, TrustGeneration: first.Trust, MirrorSetHash: first.Mirrors,
	}
	for i := range lines {
		d := lines[i].Decision
		r.Result = gate.First(r.Result, d.Result)
		if d.Image != nil {
			r.Images = append(r.Images, imageOf(d))
			continue
		}
		r.Reasons, r.Warnings = reasonsOf(d.Reasons), reasonsOf(d.Warnings)
		for k := range d.Rules {
			r.Rules = append(r.Rules, ruleOf(&d.Rules[k]))
		}
	}
	return r
}
